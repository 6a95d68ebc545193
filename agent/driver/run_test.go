package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// fake is a driver whose commands return err.
type fake struct {
	number uint64
	code   Code
	err    error
	calls  []string
	hangs  chan struct{}
	dir    string
	limit  time.Duration
}

func (f *fake) call(name string, args []string) error {
	f.calls = append(f.calls, fmt.Sprint(name, args))
	if f.hangs != nil {
		<-f.hangs
	}
	return f.err
}

func (f *fake) Sequence(context.Context) (uint64, error)          { return f.number, f.err }
func (f *fake) Status(context.Context) (Code, error)              { return f.code, f.err }
func (f *fake) Ready(context.Context) error                       { return f.call("ready", nil) }
func (f *fake) Seed(context.Context) error                        { return f.call("seed", nil) }
func (f *fake) Primary(_ context.Context, names []string) error   { return f.call("primary", names) }
func (f *fake) Secondary(_ context.Context, names []string) error { return f.call("secondary", names) }
func (f *fake) Promote(context.Context) error                     { return f.call("promote", nil) }
func (f *fake) Demote(context.Context) error                      { return f.call("demote", nil) }
func (f *fake) Stop(context.Context) error                        { return f.call("stop", nil) }
func (f *fake) Maintain(context.Context) error                    { return nil }

func (f *fake) Crashed(int) bool          { return false }
func (f *fake) LockDir() string           { return f.dir }
func (f *fake) StartLimit() time.Duration { return f.limit }

func TestExitCodes(t *testing.T) {
	for _, row := range []struct {
		name           string
		driver         fake
		args           []string
		code           Code
		stdout, stderr string
	}{
		{"sequence", fake{number: 1 << 63}, nil, 0, "9223372036854775808\n", ""},
		{"sequence", fake{number: 7, err: errors.New("unreadable")}, nil, Failed, "", "unreadable\n"},
		{"sequence", fake{err: Errorf(NotInstalled, "foreign")}, nil, NotInstalled, "", "foreign\n"},
		{"status", fake{code: Secondary}, nil, 0, "", ""},
		{"status", fake{code: Stopped}, nil, 7, "", ""},
		{"status", fake{code: Primary}, nil, 8, "", ""},
		{"status", fake{code: Primary, err: errors.New("hangs")}, nil, Failed, "", "hangs\n"},
		{"secondary", fake{}, []string{"a", "b"}, 0, "", ""},
		{"seed", fake{err: fmt.Errorf("start: %w", Errorf(NotConfigured, "bad"))}, nil, NotConfigured, "", "start: bad\n"},
		{"dance", fake{}, nil, Unimplemented, "", ""},
	} {
		var stdout, stderr bytes.Buffer
		row.driver.dir, row.driver.limit = t.TempDir(), time.Minute
		code := Run(&row.driver, row.name, row.args, Options{Stdout: &stdout, Stderr: &stderr})
		if code != row.code || stdout.String() != row.stdout || stderr.String() != row.stderr {
			t.Errorf("%s: %d %q %q, want %d %q %q", row.name, code, stdout.String(), stderr.String(), row.code, row.stdout, row.stderr)
		}
	}
	f := fake{dir: t.TempDir(), limit: time.Minute}
	Run(&f, "secondary", []string{"a", "b"}, Options{Stderr: new(bytes.Buffer)})
	if got := fmt.Sprint(f.calls); got != "[secondary[a b]]" {
		t.Errorf("the calls are %s", got)
	}
}

func TestACommandThatIgnoresItsLimitEnds(t *testing.T) {
	f := fake{hangs: make(chan struct{}), dir: t.TempDir(), limit: 10 * time.Millisecond}
	defer close(f.hangs)
	var stderr bytes.Buffer
	o := Options{Stderr: &stderr}
	if code := Run(&f, "seed", nil, o); code != Failed {
		t.Errorf("the exit code is %d, want %d", code, Failed)
	}
	// It still runs, so another one must not start.
	stderr.Reset()
	if code := Run(&fake{dir: f.dir, limit: f.limit}, "promote", nil, o); code != Failed || !bytes.Contains(stderr.Bytes(), []byte("another command")) {
		t.Errorf("a second command: %d %s", code, stderr.String())
	}
	if code := Run(&fake{code: Primary}, "status", nil, o); code != Primary {
		t.Errorf("status exits with %d while a command runs, want %d", code, Primary)
	}
}

func TestEpochsOfAnObjectThatWasCreatedAgain(t *testing.T) {
	const first, second = 1764338400, 1764425000
	for _, row := range []struct {
		start, former Start
		want          int64
	}{
		{Start{first, 7}, Start{first, 3}, 4},
		{Start{first, 1}, Start{}, 1},
		{Start{second, 2}, Start{first, 9}, 2},
		{Start{second, second + 30}, Start{first, 9}, 30}, // restored from a backup
		{Start{second, second + 31}, Start{second, second + 30}, 1},
		{Start{second, second + 1<<30}, Start{first, 9}, maxAfter},
	} {
		if got := row.start.After(row.former); got != row.want {
			t.Errorf("%v is %d after %v, want %d", row.start, got, row.former, row.want)
		}
	}
}
