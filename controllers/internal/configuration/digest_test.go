package configuration

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// secretFields returns the volume sources that refer to a Secret, with the field that does so.
func secretFields() map[string]string {
	found := map[string]string{}
	volume := reflect.TypeFor[corev1.VolumeSource]()
	for i := range volume.NumField() {
		kind := volume.Field(i).Type.Elem()
		for j := range kind.NumField() {
			name, of := kind.Field(j).Name, kind.Field(j).Type
			if strings.Contains(name, "Secret") || of == reflect.TypeFor[*corev1.LocalObjectReference]() || of == reflect.TypeFor[[]corev1.VolumeProjection]() {
				found[volume.Field(i).Name] = name
			}
		}
	}
	return found
}

var oneKey = hashKey("0123456789abcdef0123456789abcdef")

// contents are pairwise different.
var contents = []struct {
	sentence string
	content  *content
}{
	{"no object", nil},
	{"an empty object", &content{}},
	{"a key without value", &content{data: map[string][]byte{"a": nil}}},
	{"the same value in binaryData", &content{binary: map[string][]byte{"a": nil}}},
	{"one value", &content{data: map[string][]byte{"a": []byte("b")}}},
	{"the value is the former key", &content{data: map[string][]byte{"ab": nil}}},
	{"key and value are swapped", &content{data: map[string][]byte{"b": []byte("a")}}},
	{"two keys", &content{data: map[string][]byte{"a": nil, "b": nil}}},
	{"one of two keys in binaryData", &content{data: map[string][]byte{"a": nil}, binary: map[string][]byte{"b": nil}}},
	{"one value with the encoding of two keys", &content{data: map[string][]byte{"a": []byte("\x00\x00\x00\x00\x00\x00\x00\x01b\x00\x00\x00\x00\x00\x00\x00\x00")}}},
}

func TestE14OtherContentsHaveAnotherDigest(t *testing.T) {
	whole := usage{Origin: Origin{KindConfigMap, "c"}, whole: true}
	byKey := usage{Origin: Origin{KindConfigMap, "c"}, keys: []string{"a"}}
	for _, one := range contents {
		for _, other := range contents {
			same := one.sentence == other.sentence
			if got := oneKey.digest(&whole, one.content) == oneKey.digest(&whole, other.content); got != same {
				t.Errorf("%s and %s: same digest is %v", one.sentence, other.sentence, got)
			}
			if got := oneKey.digest(&byKey, one.content) == oneKey.digest(&byKey, other.content); got != sameKeyA(one.content, other.content) {
				t.Errorf("key a when %s and %s: same digest is %v", one.sentence, other.sentence, got)
			}
		}
	}
}

func sameKeyA(one, other *content) bool {
	at := func(c *content) string {
		if c == nil {
			return "absent"
		}
		if v, ok := c.data["a"]; ok {
			return "data " + string(v)
		}
		if v, ok := c.binary["a"]; ok {
			return "binary " + string(v)
		}
		return "absent"
	}
	return at(one) == at(other)
}

func TestDigestsDifferByKeyKindAndName(t *testing.T) {
	c := &content{data: map[string][]byte{"a": []byte("b")}}
	of := func(k hashKey, kind, name string) string {
		return k.digest(&usage{Origin: Origin{kind, name}, whole: true}, c)
	}
	all := []string{of(oneKey, KindConfigMap, "c"), of(oneKey, KindSecret, "c"), of(oneKey, KindConfigMap, "d"), of(hashKey("another"), KindConfigMap, "c")}
	if slices.Sort(all); len(slices.Compact(all)) != 4 {
		t.Errorf("the same digest twice among %v", all)
	}
	if oneKey.name() == hashKey("another").name() || strings.Contains(oneKey.name(), string(oneKey)) {
		t.Error("two keys are equal, or a key contains its name")
	}
	if oneKey.combined([]string{"ab", "c"}) == oneKey.combined([]string{"a", "bc"}) || oneKey.combined(nil) == oneKey.combined([]string{""}) {
		t.Error("two lists of digests have the same hash")
	}
}

// Hashes are stored in objects. A change of the encoding must therefore change its name too, so that it
// is not mistaken for an edit.
func TestTheEncodingStaysAsItIs(t *testing.T) {
	u := usage{Origin: Origin{KindSecret, "s"}, whole: true}
	got := oneKey.name() + " " + oneKey.combined([]string{oneKey.digest(&u, contents[8].content)})
	if want := "c449b1fd35964a0e 8abc8ddf933df96bec4c467a64a2a25bf49fb732c7f6f9ce40564adf681774a4"; got != want {
		t.Errorf("the hash is %s, was %s: use another name for the new encoding", got, want)
	}
}

func FuzzDigestsOfOtherContentsDiffer(f *testing.F) {
	for _, c := range contents {
		text, err := json.Marshal(fuzzed(c.content))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, []byte("{}"))
	}
	f.Add([]byte(`{"data":{"a":"Yg=="}}`), []byte(`{"data":{"ab":""}}`))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		var a, b form
		if json.Unmarshal(one, &a) != nil || json.Unmarshal(other, &b) != nil {
			return
		}
		u := usage{Origin: Origin{KindSecret, "s"}, whole: true}
		x, y := content{data: a.Data, binary: a.Binary}, content{data: b.Data, binary: b.Binary}
		same := maps.EqualFunc(a.Data, b.Data, bytes.Equal) && maps.EqualFunc(a.Binary, b.Binary, bytes.Equal)
		if got := oneKey.digest(&u, &x) == oneKey.digest(&u, &y); got != same {
			t.Errorf("%s and %s: same digest is %v, same contents %v", one, other, got, same)
		}
	})
}

type form struct {
	Data   map[string][]byte `json:"data"`
	Binary map[string][]byte `json:"binary"`
}

func fuzzed(c *content) form {
	if c == nil {
		return form{}
	}
	return form{c.data, c.binary}
}
