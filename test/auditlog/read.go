// Package auditlog reads the API server's audit log.
package auditlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Read calls see for each event about an object, in the order of the log. Lines without mention are
// skipped undecoded, which saves most of the work when one user is searched for. An incomplete last
// line is ignored: the API server may still be writing it.
func Read(log io.Reader, mention string, see func(*auditv1.Event)) error {
	lines := bufio.NewReaderSize(log, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil && line[0] == '{' && !bytes.Contains(line, []byte(mention)):
			continue
		}
		var e auditv1.Event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		if e.ObjectRef != nil {
			see(&e)
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
