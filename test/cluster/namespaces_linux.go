package cluster

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// newNamespaces returns the attributes that make a process the first process of a node.
func newNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
}

// onOverlay reports whether dir is on an overlay file system.
func onOverlay(dir string) bool {
	const overlayMagic = 0x794c7630
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Type == overlayMagic
}

// tryOverlay mounts an overlay below dir, as containerd does for each container. Only one thread sees
// the mount, and it disappears with the thread.
func tryOverlay(dir string) error {
	if onOverlay(dir) {
		return nil // containerd copies files there
	}
	folder, err := os.MkdirTemp(dir, "overlay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for _, name := range []string{"lower", "upper", "work", "all"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			return err
		}
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends
		err := syscall.Unshare(syscall.CLONE_NEWNS)
		if err == nil {
			err = syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
		}
		at := func(name string) string { return filepath.Join(folder, name) }
		if err == nil {
			err = syscall.Mount("overlay", at("all"), "overlay", 0, "lowerdir="+at("lower")+",upperdir="+at("upper")+",workdir="+at("work"))
		}
		if err == nil {
			err = syscall.Unmount(at("all"), 0)
		}
		result <- err
	}()
	return <-result
}
