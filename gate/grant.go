package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A grant is the text "<pod UID> <epoch>" without a newline: the UID of this pod, one space, and a
// decimal number of at least 1. A file that a volume kept from another pod, or that a user changed, is
// not a grant.
//
// script/wrapper.sh has the same rule. grant_test.go tests both with the same table.

const (
	grantFile = "start-signal"
	uidFile   = "pod-uid"

	maxEpochDigits = 18   // fits into an int64, here and in a shell
	maxFileBytes   = 1024 // a grant has about 40 bytes
)

// standing is the state of this pod according to the files.
type standing struct {
	epoch string // of the grant; empty if there is none
	fault string // message about an invalid file
}

func (s standing) granted() bool { return s.epoch != "" }

func (s standing) String() string {
	switch {
	case s.granted():
		return "granted, epoch " + s.epoch
	case s.fault != "":
		return "waiting: " + s.fault
	}
	return "waiting"
}

// look reads the files again. The kubelet replaces them by swapping a symbolic link, so an open file
// would never change.
func look(dir string) standing {
	grant, fault := readSmall(dir + "/" + grantFile)
	if fault != "" || grant == "" {
		return standing{fault: fault}
	}
	uid, fault := readSmall(dir + "/" + uidFile)
	if fault != "" {
		return standing{fault: fault}
	}
	return judge(grant, uid)
}

func judge(grant, uid string) standing {
	forUID, epoch, spaced := strings.Cut(grant, " ")
	switch {
	case uid == "" || strings.Contains(uid, "\n"):
		return standing{fault: "file " + uidFile + " contains " + quote(uid) + ", so no grant can be for this pod"}
	case !spaced || forUID == "" || !isEpoch(epoch):
		return standing{fault: "file " + grantFile + " contains " + quote(grant) +
			", which is not a grant: a grant is the pod's UID, a space and a number of 1 or more"}
	case forUID != uid:
		return standing{fault: "the grant is for pod " + quote(forUID) + ", but this is pod " + quote(uid)}
	}
	return standing{epoch: epoch}
}

func isEpoch(text string) bool {
	if text == "" || text[0] == '0' || len(text) > maxEpochDigits {
		return false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// podName returns the name of this pod for log messages.
func podName(dir string) string {
	uid, fault := readSmall(dir + "/" + uidFile)
	switch {
	case fault != "":
		return "unknown: " + fault
	case uid == "":
		return "unknown: file " + uidFile + " is empty"
	}
	return plain(uid)
}

// readSmall reads a file of at most maxFileBytes. It does not use package os, whose files would need a
// poller and cause garbage a hundred times per second.
func readSmall(path string) (text, fault string) {
	var buffer [maxFileBytes + 1]byte
	fd, err := open(path)
	if err != nil {
		return "", "cannot read file " + path + ": " + err.Error()
	}
	defer syscall.Close(fd)
	for have := 0; ; {
		n, err := syscall.Read(fd, buffer[have:])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return "", "cannot read file " + path + ": " + err.Error()
		case n == 0:
			return string(buffer[:have]), ""
		default:
			have += n
		}
		if have == len(buffer) {
			return "", "file " + path + " is too long for a grant or a UID"
		}
	}
}

func open(path string) (int, error) {
	for {
		fd, err := syscall.Open(path, os.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// plain returns the text, quoted if it contains characters that need quoting.
func plain(text string) string {
	if quoted := quote(text); quoted[1:len(quoted)-1] != text {
		return quoted
	}
	return text
}

func quote(text string) string {
	const most = 100
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}
