package leasewatch

import "time"

// Sighting is the last version of a Lease that this process has seen. The empty version stands for a missing Lease.
type Sighting struct {
	version string
	at      time.Time
}

// Since returns when this process first saw a version.
func (s *Sighting) Since(version string, now time.Time) time.Time {
	if s.at.IsZero() || s.version != version {
		*s = Sighting{version, now}
	}
	return s.at
}
