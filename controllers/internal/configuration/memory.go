package configuration

import "sync"

// address identifies a source.
type address struct {
	namespace string
	Origin
}

// editionResults contains the results for one version of a source. The contents themselves are not kept.
type editionResults struct {
	edition
	key     string            // the name of the hash key
	results map[string]result // by the shape of a usage
}

// result is what a usage needs of the contents of a source.
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
	all map[address]*editionResults
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

// store adds a result.
func (m *readMemory) store(at address, e edition, key, shape string, got result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.all[at]
	if !k.isOf(e, key) {
		if m.all == nil || len(m.all) == maxRead {
			m.all = map[address]*editionResults{}
		}
		k = &editionResults{edition: e, key: key, results: map[string]result{}}
		m.all[at] = k
	}
	if len(k.results) == maxShapes {
		clear(k.results)
	}
	k.results[shape] = got
}

// forget drops the results for a source.
func (m *readMemory) forget(at address) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, at)
}

// isOf reports whether the results are for the edition and were made with the key.
func (k *editionResults) isOf(e edition, key string) bool {
	return k != nil && k.edition == e && k.key == key
}
