package redis

import "testing"

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{
		"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1": "7",
		"Valkey server v=8.1.0 sha=00000000:0 malloc=libc bits=64 build=1":           "8",
		"Server v=7.2.7 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1":        "7",
	} {
		if match := versionText.FindStringSubmatch(text); match == nil || match[2] != want {
			t.Errorf("%q has version %q, want %s", text, match, want)
		}
	}
	if match := versionText.FindStringSubmatch("redis-cli 7.0.15"); match != nil {
		t.Errorf("another program has version %q", match)
	}
}
