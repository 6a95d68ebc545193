package cluster

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestStateSurvivesTheProgram(t *testing.T) {
	c := &Cluster{dir: t.TempDir(), log: io.Discard, state: state{
		Name: "a", Nodes: 3, Slot: 2, Address: "198.18.2.1", Ready: true,
		FeatureGates: map[string]bool{"X": true},
		Ports:        map[string]int{"apiserver": 6443},
		Sets:         map[Set]string{Kubernetes: "/k"},
		Processes:    map[string]process{"etcd": {PID: 7, Start: "99"}},
	}}
	if err := c.save(); err != nil {
		t.Fatal(err)
	}
	read, err := readState(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, c.state) {
		t.Errorf("got  %+v\nwant %+v", read, c.state)
	}
}

func TestNamesOfClusters(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for name, good := range map[string]bool{
		"local": true, "e2e-1": true, "": false, "../up": false, "a/b": false, "A": false,
		"-a": false, strings.Repeat("a", 30): true, strings.Repeat("a", 31): false,
	} {
		if _, err := clusterDir(name); (err == nil) != good {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

func TestOpeningAClusterThatDoesNotRunSaysWhatToDo(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := Open("")
	const want = "cluster local is not running; start it with: go run ./test/cluster/cmd/cluster up --name local"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestDownOfNothingIsFine(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var log bytes.Buffer
	if err := Down(context.Background(), "nothing", &log); err != nil {
		t.Fatal(err)
	}
	if log.String() != "cluster nothing is not running\n" {
		t.Errorf("output %q", log.String())
	}
}

func TestDownWorksWithATornState(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := clusterDir("torn")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte(`{"name": "to`), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := startProcess(dir, "sleeper", []string{"sleep", "60"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := poll(context.Background(), 10*time.Second, func() bool { return len(marked(dir)) > 0 }); err != nil {
		t.Skip("processes have no readable marks on this system")
	}
	if err := Down(context.Background(), "torn", io.Discard); err != nil {
		t.Fatal(err)
	}
	if p.alive() || isDir(dir) {
		t.Errorf("left: process %t, folder %t", p.alive(), isDir(dir))
	}
}

func TestALockIsHeldOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	unlock, err := lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); err == nil {
		t.Error("a second process got the lock")
	}
	unlock()
	again, err := lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestAClusterIsHeldByOne(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	release, err := Hold(ctx, "held", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	said, ended := &lines{said: make(chan string, 1)}, make(chan error, 1)
	go func() {
		release, err := Hold(ctx, "held", said)
		if err == nil {
			release()
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("a second process did not wait: %v", err)
	case line := <-said.said:
		if !strings.Contains(line, "cluster held") {
			t.Errorf("got %q", line)
		}
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// lines sends each write to a channel.
type lines struct{ said chan string }

func (l *lines) Write(text []byte) (int, error) {
	l.said <- string(text)
	return len(text), nil
}
