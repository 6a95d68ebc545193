package configuration

import "sync"

type address struct {
	namespace string
	Origin
}

// known contains the results for one version of a source. The contents themselves are not kept.
type known struct {
	edition
	key     string
	results map[string]result // by the shape of a usage
}

type result struct {
	digest  string
	missing []string
	bytes   int
	// immutable is true if the source is immutable.
	immutable bool
}

// Limits of readMemory. Beyond them, results are dropped and computed again.
const (
	maxRead   = 1 << 16 // sources
	maxShapes = 64      // per source
)

// readMemory caches results that were computed from the contents of ConfigMaps and Secrets.
type readMemory struct {
	mu  sync.Mutex
	all map[address]*known
}

// find returns the result for an edition of a source with a key. ok is false if there is none.
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
		if m.all == nil || len(m.all) == maxRead {
			m.all = map[address]*known{}
		}
		k = &known{edition: e, key: key, results: map[string]result{}}
		m.all[at] = k
	}
	if len(k.results) == maxShapes {
		clear(k.results)
	}
	k.results[shape] = got
}

func (m *readMemory) forget(at address) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, at)
}

// isOf reports whether the results are for the edition and were made with the key.
func (k *known) isOf(e edition, key string) bool { return k != nil && k.edition == e && k.key == key }
