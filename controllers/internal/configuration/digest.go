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

// encoding identifies the encoding of hashed data. It is part of the name of the key, so that a change
// of the encoding is not mistaken for a change of the contents.
const encoding = "stateful-operator/configuration/1"

// content is the content of a ConfigMap or Secret; nil if the object does not exist.
type content struct {
	data, binary map[string][]byte
	immutable    bool
}

// isImmutable reports whether the object is immutable.
func (c *content) isImmutable() bool { return c != nil && c.immutable }

// bytes returns the size of the content.
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

// hashKey is the operator's secret key for hashes. Without a key, a user who can read a StatefulSet
// could verify guesses of the contents of a Secret.
type hashKey []byte

// name identifies the key and the encoding, without revealing the key.
func (k hashKey) name() string {
	w := k.writer()
	w.text(encoding)
	return hex.EncodeToString(w.sum()[:8])
}

func (k hashKey) writer() lengthWriter { return lengthWriter{hmac.New(sha256.New, k)} }

// lengthWriter hashes values, each with its length as a prefix. So different lists of values result in
// different input of the hash.
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

// entries writes a map, sorted by key.
func (w lengthWriter) entries(m map[string][]byte) {
	w.number(len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.text(key)
		w.bytes(m[key])
	}
}

// entry writes one key of a content, its value, and the field that contains it.
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

// digest hashes the part of a content that a usage refers to.
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

// lacks returns messages about required parts that are missing in a content.
func (u *usage) lacks(c *content) (missing []string) {
	if by, required := u.needs[""]; required && c == nil {
		return []string{fmt.Sprintf("%s does not exist and is required by %s", u.Origin, by)}
	}
	if c == nil {
		return nil
	}
	for _, key := range u.keys {
		by, required := u.needs[key]
		_, data := c.data[key]
		_, other := c.binary[key]
		if required && !data && !other {
			missing = append(missing, fmt.Sprintf("%s has no key %q, which is required by %s", u.Origin, key, by))
		}
	}
	return missing
}

// shape identifies which parts of a source a usage refers to.
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

// combined returns the hash of a complete configuration, from the digests of its usages in order.
func (k hashKey) combined(digests []string) string {
	w := k.writer()
	w.text(encoding)
	w.number(len(digests))
	for _, d := range digests {
		w.text(d)
	}
	return hex.EncodeToString(w.sum())
}

// edition identifies a version of a source, without its contents. The same edition has the same
// contents. The zero value means that the source does not exist.
type edition struct{ uid, resource string }

// versionsDigest returns a digest of the versions of all sources of a configuration. While it is
// unchanged, nothing was edited, and no contents need to be read. Versions are not secret, so the
// digest needs no key, and remains valid if the key is lost.
func versionsDigest(all []usage, versions map[Origin]edition) string {
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
