package configuration

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
)

// encoding is the form of what is hashed. It goes into the name of the key, so
// that another form is told from other contents.
const encoding = "stateful-operator/configuration/1"

// content is what is in a ConfigMap or Secret; nil: there is none.
type content struct {
	data, binary map[string][]byte
	immutable    bool
}

// isImmutable reports whether the API server refuses edits of the content.
func (c *content) isImmutable() bool { return c != nil && c.immutable }

// bytes is how long it is.
func (c *content) bytes() (n int) {
	if c == nil {
		return 0
	}
	for _, entries := range []map[string][]byte{c.data, c.binary} {
		for key, value := range entries {
			n += len(key) + len(value)
		}
	}
	return n
}

// hashKey is the operator's secret: without it, a hash would let whoever may read
// a StatefulSet try out guesses at a Secret.
type hashKey []byte

// name tells keys, and forms of encoding, apart; it tells nothing about the key.
func (k hashKey) name() string {
	w := k.writer()
	w.text(encoding)
	return hex.EncodeToString(w.sum()[:8])
}

func (k hashKey) writer() lengthWriter { return lengthWriter{hmac.New(sha256.New, k)} }

// lengthWriter writes values so that no two lists of values give the same bytes: each
// has its length in front of it.
type lengthWriter struct{ to hash.Hash }

func (w lengthWriter) number(n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // a length
	w.to.Write(b[:])
}

func (w lengthWriter) bytes(b []byte) {
	w.number(len(b))
	w.to.Write(b)
}

func (w lengthWriter) text(s string) { w.bytes([]byte(s)) }

func (w lengthWriter) sum() []byte { return w.to.Sum(nil) }

// entries writes a map in the order of its keys.
func (w lengthWriter) entries(m map[string][]byte) {
	w.number(len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.text(key)
		w.bytes(m[key])
	}
}

// entry writes one key of a content, and where it is.
func (w lengthWriter) entry(c *content, key string) {
	w.text(key)
	if c != nil {
		if value, ok := c.data[key]; ok {
			w.text("data")
			w.bytes(value)
			return
		}
		if value, ok := c.binary[key]; ok {
			w.text("binaryData")
			w.bytes(value)
			return
		}
	}
	w.text("absent")
}

// digest hashes what a use takes of a content.
func (k hashKey) digest(u *usage, c *content) string {
	w := k.writer()
	w.text(encoding)
	w.text(u.Kind)
	w.text(u.Name)
	switch {
	case !u.whole:
		w.text("keys")
		w.number(len(u.keys))
		for _, key := range u.keys {
			w.entry(c, key)
		}
	case c == nil:
		w.text("absent")
	default:
		w.text("whole")
		w.entries(c.data)
		w.entries(c.binary)
	}
	return hex.EncodeToString(w.sum())
}

// lacks lists what a use needs and a content has not, as sentences for people.
func (u *usage) lacks(c *content) (missing []string) {
	if by, required := u.needs[""]; required && c == nil {
		return []string{fmt.Sprintf("%s does not exist, and %s needs it", u.Origin, by)}
	}
	if c == nil {
		return nil
	}
	for _, key := range u.keys {
		by, required := u.needs[key]
		_, data := c.data[key]
		_, other := c.binary[key]
		if required && !data && !other {
			missing = append(missing, fmt.Sprintf("%s has no key %q, and %s needs it", u.Origin, key, by))
		}
	}
	return missing
}

// shape tells uses apart that take other parts of the same source.
func (u *usage) shape() string {
	w := lengthWriter{sha256.New()}
	w.number(len(u.keys))
	for _, key := range u.keys {
		w.text(key)
		w.text(u.needs[key])
	}
	w.text(u.needs[""])
	w.text(fmt.Sprint(u.whole))
	return string(w.sum())
}

// combined is the hash of a whole configuration, from the digests of its uses in
// their order.
func (k hashKey) combined(digests []string) string {
	w := k.writer()
	w.text(encoding)
	w.number(len(digests))
	for _, d := range digests {
		w.text(d)
	}
	return hex.EncodeToString(w.sum())
}

// edition is what the API server says of a source without its contents: objects of
// the same version have the same contents. Zero: there is none.
type edition struct{ uid, resource string }

// seenOf is a digest of the versions of all sources of a configuration. While it
// stands, nothing was edited, and nothing need be read. Versions are no secret, so
// it needs no key, and outlives one that is lost.
func seenOf(all []usage, versions map[Origin]edition) string {
	w := lengthWriter{sha256.New()}
	w.number(len(all))
	for i := range all {
		v := versions[all[i].Origin]
		w.text(all[i].Kind)
		w.text(all[i].Name)
		w.text(v.uid)
		w.text(v.resource)
	}
	return hex.EncodeToString(w.sum()[:16])
}
