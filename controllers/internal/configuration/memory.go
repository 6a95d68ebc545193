package configuration

import "sync"

type address struct {
	namespace string
	Origin
}

// known is what was made of the contents of one source, of that version. The
// contents themselves are not kept.
type known struct {
	edition
	key     string
	results map[string]result // by the shape of a use
}

type result struct {
	digest  string
	missing []string
	bytes   int
	// immutable is true if the API server refuses edits of the source.
	immutable bool
}

// So much is remembered of what was read; beyond that it is forgotten, and read again.
const (
	mostRead   = 1 << 16 // sources
	mostShapes = 64      // of one of them
)

// readMemory remembers what was made of the contents of ConfigMaps and Secrets.
type readMemory struct {
	mu  sync.Mutex
	all map[address]*known
}

// find is what was made of an edition of a source with a key; none if it is not known.
func (m *readMemory) find(at address, e edition, key, shape string) (got result, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.all[at]; k.isOf(e, key) {
		got, ok = k.results[shape]
	}
	return got, ok
}

func (m *readMemory) learn(at address, e edition, key, shape string, got result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.all[at]
	if !k.isOf(e, key) {
		if m.all == nil || len(m.all) == mostRead {
			m.all = map[address]*known{}
		}
		k = &known{edition: e, key: key, results: map[string]result{}}
		m.all[at] = k
	}
	if len(k.results) == mostShapes {
		clear(k.results)
	}
	k.results[shape] = got
}

func (m *readMemory) forget(at address) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, at)
}

// isOf reports whether it is of an edition, and was made with a key.
func (k *known) isOf(e edition, key string) bool { return k != nil && k.edition == e && k.key == key }
