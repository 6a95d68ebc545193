package driver

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// containerLog is the log of the container, to which process 1 writes.
const containerLog = "/proc/1/fd/1"

// Log writes lines with the name of the command. A line is dropped if the log is not writable.
type Log struct {
	name string
	file *os.File
}

// CommandLog returns a log for a command. A command is started by exec, and its own output is not in the
// log of the container.
func CommandLog(name string) *Log {
	file, err := os.OpenFile(containerLog, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		file = nil
	}
	return &Log{name: name, file: file}
}

// ProcessLog returns a log for process 1.
func ProcessLog(name string) *Log { return &Log{name: name, file: os.Stderr} }

// Printf writes a line.
func (l *Log) Printf(format string, args ...any) {
	if l == nil || l.file == nil {
		return
	}
	text := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(format, args...)), "\n", "; ")
	fmt.Fprintf(l.file, "%s agent %s: %s\n", time.Now().UTC().Format("2006-01-02 15:04:05.000"), l.name, text)
}

// Output returns the file to which a detached process can write, or nil.
func (l *Log) Output() *os.File {
	if l == nil {
		return nil
	}
	return l.file
}
