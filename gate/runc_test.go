package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// runcRun returns a command that runs argv with runc. The container has a read-only scratch image, a
// random user and this pod's volume, and argv is process 1.
func runcRun(t *testing.T, p pod, root string, env []string, argv ...string) *exec.Cmd {
	t.Helper()
	type object map[string]any
	mount := func(kind, from, to string, options ...string) object {
		return object{"type": kind, "source": from, "destination": to, "options": options}
	}
	config, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": randomUID, "gid": 0}, "cwd": "/", "noNewPrivileges": true,
			"args": argv, "env": append([]string{"PATH=/bin"}, env...),
		},
		"root": object{"path": root, "readonly": true},
		"mounts": []object{
			mount("proc", "proc", "/proc"),
			mount("bind", p.dir, defaultSignalDir, "rbind", "ro"),
			mount("tmpfs", "tmpfs", "/opt/wrapper", "mode=777"),
		},
		"linux": object{"namespaces": []object{{"type": "pid"}, {"type": "mount"}}},
	})
	p.check(err)
	bundle := t.TempDir()
	p.check(os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o644))
	name := strings.ReplaceAll(filepath.Base(filepath.Dir(bundle))+filepath.Base(bundle), "/", "-")
	return exec.Command("runc", "run", "--bundle", bundle, "gate-test-"+strconv.Itoa(os.Getpid())+"-"+name)
}

func TestInAContainerOfRunc(t *testing.T) {
	needRoot(t)
	program(t, "runc")
	root, p := scratch(t), newPod(t, "")
	if got := run(t, runcRun(t, p, root, nil, "/gate", "touch")); got.status != "exit 0" {
		lacks(t, "runc cannot create containers here: "+got.stderr)
	}

	held := func(role string, argv ...string) *exec.Cmd {
		return runcRun(t, p, root, []string{probeEnv + "=" + role}, append([]string{"/gate", "run", "--"}, argv...)...)
	}
	r := start(t, held("arguments", "program", "a b", "", "$(id)", "two\nlines"))
	r.waits()
	p.grant(granted)
	got := r.end()
	wantEqual(t, "the program", got.stdout+got.status, "program\x00a b\x00\x00$(id)\x00two\nlinesexit 0")

	wantEqual(t, "with the grant", run(t, held("zombies", "program")).status, "exit 5")

	p.grant(strangeUID + " 7")
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT} {
		r = start(t, held("arguments", "program"))
		r.waits()
		r.signal(s) // runc forwards it
		got = r.end()
		wantEqual(t, "the exit", got.stdout+got.status, "exit "+strconv.Itoa(128+int(s)))
	}
}
