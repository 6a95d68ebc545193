package lease

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A grant is the text "<pod UID> <epoch>" without a newline: the UID of this pod, one space, and a decimal number
// of at least 1. The gate has the same rule.
const (
	grantFile = "start-signal"

	maxEpochDigits = 18   // fits into an int64
	maxFileBytes   = 1024 // a grant has about 40 bytes
)

// grant returns the epoch of the start grant, or "" if the pod has none. The kubelet replaces the files by
// swapping a symbolic link, so an open file would never change.
func (f Folders) grant() string {
	text := readSmall(filepath.Join(f.Signal, grantFile))
	uid := readSmall(filepath.Join(f.Signal, podUIDFile))
	forUID, epoch, _ := strings.Cut(text, " ")
	isOwn := uid != "" && forUID == uid
	if !isOwn || strings.Contains(uid, "\n") || !isEpoch(epoch) {
		return ""
	}
	return epoch
}

func isEpoch(text string) bool {
	isNumber := text != "" && strings.Trim(text, "0123456789") == ""
	return isNumber && text[0] != '0' && len(text) <= maxEpochDigits
}

// readSmall returns the content of a file, or "" if it is unreadable or too long.
func readSmall(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil || len(text) > maxFileBytes {
		return ""
	}
	return string(text)
}
