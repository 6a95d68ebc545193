package cluster

import "syscall"

// newNamespaces is what makes a process the first one of a node.
func newNamespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
}

// onOverlay tells whether dir is on an overlay file system.
func onOverlay(dir string) bool {
	const overlayMagic = 0x794c7630
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Type == overlayMagic
}
