package main

import (
	"fmt"
	"strings"
	"testing"
)

// ran returns the log of a server that ran for two seconds from the given one.
func ran(from int) string {
	at := func(second int, text string) string {
		return fmt.Sprintf("2026-01-02 03:04:%02d.000 UTC [1] LOG:  %s\n", second, text)
	}
	return at(from, saysStart) + at(from, saysState) + at(from+2, saysStop)
}

func TestServersRunOneAfterAnother(t *testing.T) {
	const waits = "StatefulSingleton: waiting for the start signal\n"
	for _, row := range []struct {
		sentence string
		logs     []string
		fails    bool
	}{
		{"two servers one after another", []string{ran(1), ran(4)}, false},
		{"two servers at the same time", []string{ran(1), ran(2)}, true},
		{"two servers one after another, listed in another order", []string{ran(2), ran(1)}, true},
		{"a pod between them waits for the grant", []string{ran(1), waits, ran(4)}, false},
		{"a pod after them waits for the grant", []string{ran(4), ran(1), waits}, false},
		{"a server did not stop before the next started", []string{strings.Replace(ran(1), saysStop, "", 1), ran(4)}, true},
		{"a server without a log", []string{ran(1), waits}, true},
	} {
		var logs serverLogs
		for i, text := range row.logs {
			s := &server{pod: fmt.Sprint(i)}
			s.log.text.WriteString(text)
			logs.servers = append(logs.servers, s)
		}
		if err := logs.tell(2); (err != nil) != row.fails {
			t.Errorf("%s: %v", row.sentence, err)
		}
	}
}
