// Package auditlog reads the API server's audit log.
package auditlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Read calls see for each event about an object, in the order of the log. Lines without mention are
// skipped undecoded, which saves most of the work when one user is searched for.
func Read(log io.Reader, mention string, see func(*auditv1.Event)) error {
	err := Lines(log, []string{mention}, func(_ int, line []byte) error {
		var e auditv1.Event
		err := json.Unmarshal(line, &e)
		if err == nil && e.ObjectRef != nil {
			see(&e)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	return nil
}

// Lines calls see for each line with one of the mentions, with its number, until see returns an error. Lines that are no
// JSON objects count as well. An incomplete last line is ignored: the API server may still be writing it.
func Lines(log io.Reader, mentions []string, see func(number int, line []byte) error) error {
	lines := bufio.NewReaderSize(log, 1<<20)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		mentioned := slices.ContainsFunc(mentions, func(part string) bool { return bytes.Contains(line, []byte(part)) })
		if line[0] == '{' && !mentioned {
			continue
		}
		if err := see(n, line); err != nil {
			return err
		}
	}
}

// Resource returns the resource of a request, with its subresource.
func Resource(e *auditv1.Event) string {
	if e.ObjectRef.Subresource == "" {
		return e.ObjectRef.Resource
	}
	return e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
}
