package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// cgroupTree replaces /sys/fs/cgroup by ordinary folders and files.
func cgroupTree(t *testing.T, files map[string]string) {
	t.Helper()
	before := cgroupRoot
	cgroupRoot = t.TempDir()
	t.Cleanup(func() { cgroupRoot = before })
	for name, content := range files {
		path := filepath.Join(cgroupRoot, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cgroupRoot, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAVersion2MountBesideVersion1IsVersion1(t *testing.T) {
	cgroupTree(t, map[string]string{"memory/tasks": "", "unified/cgroup.controllers": ""})
	if cgroupV2() {
		t.Error("detected as version 2")
	}
	if err := makeCgroup("/top/a/node-1"); err != nil {
		t.Fatal(err)
	}
	if !isDir(filepath.Join(cgroupRoot, "memory/top/a/node-1")) {
		t.Error("no cgroup in the hierarchy of memory")
	}
	if isDir(filepath.Join(cgroupRoot, "unified/top")) {
		t.Error("a cgroup in the hierarchy without controllers")
	}
}

func TestAVersion1CpusetHasItsParentsProcessors(t *testing.T) {
	// The kernel creates the files of a new cgroup. The test creates them in advance.
	cgroupTree(t, map[string]string{
		"cpuset/cpuset.cpus": "0-1\n", "cpuset/cpuset.mems": "0\n",
		"cpuset/top/cpuset.cpus": "\n", "cpuset/top/cpuset.mems": "\n",
		"cpuset/top/a/cpuset.cpus": "\n", "cpuset/top/a/cpuset.mems": "\n",
	})
	if err := makeCgroup("/top/a"); err != nil {
		t.Fatal(err)
	}
	if cpus, mems := content(t, "cpuset/top/a/cpuset.cpus"), content(t, "cpuset/top/a/cpuset.mems"); cpus != "0-1\n" || mems != "0\n" {
		t.Errorf("processors %q, memory %q", cpus, mems)
	}
}

func TestVersion2HandsControllersDownToTheNode(t *testing.T) {
	cgroupTree(t, map[string]string{
		"cgroup.controllers": "cpuset cpu io memory pids\n", "cgroup.subtree_control": "cpu memory\n",
		"top/cgroup.controllers": "cpuset cpu io memory pids\n", "top/cgroup.subtree_control": "\n",
		"top/a/cgroup.controllers": "cpu memory\n", "top/a/cgroup.subtree_control": "cpu memory\n",
	})
	if !cgroupV2() {
		t.Fatal("not detected as version 2")
	}
	if err := makeCgroup("/top/a"); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"cgroup.subtree_control":       "+cpuset +io +pids",
		"top/cgroup.subtree_control":   "+cpuset +cpu +io +memory +pids",
		"top/a/cgroup.subtree_control": "cpu memory\n", // all controllers are enabled already: not written
	} {
		if got := content(t, file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

func TestRemovedCgroupsLeaveOthers(t *testing.T) {
	cgroupTree(t, nil)
	for _, dir := range []string{"cpu/stateful-operator/a/node-1/kubepods/pod1", "memory/stateful-operator/a", "memory/stateful-operator/b"} {
		if err := os.MkdirAll(filepath.Join(cgroupRoot, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeCgroups(cgroupOf("a")); err != nil {
		t.Fatal(err)
	}
	removeIfEmpty(cgroupParent)
	for dir, want := range map[string]bool{"cpu/stateful-operator": false, "memory/stateful-operator/a": false, "memory/stateful-operator/b": true} {
		if isDir(filepath.Join(cgroupRoot, dir)) != want {
			t.Errorf("%s exists: %t", dir, !want)
		}
	}
}
