package v1alpha1

import (
	"encoding/json"
	"fmt"

	strictjson "sigs.k8s.io/json"

	"github.com/stateful-operator/stateful-operator/apis/internal/decode"
)

// maxJob is the max size of a job as JSON. A list of empty objects needs two hundred times as
// much memory when it is decoded, and its length has no other limit.
const maxJob = 128 << 10

// UnmarshalJSON decodes a job. The schema checks only the quantities of its template, otherwise the
// CustomResourceDefinition would contain three pod schemas. A template may therefore not fit
// Kubernetes' type. That must not be an error: one such object would make every list fail, in all
// namespaces. Instead, Problem has the error, and the template is empty.
func (j *UpdateJob) UnmarshalJSON(text []byte) error {
	type plain UpdateJob // without this method
	var read plain
	problem, err := problemOf(text, &read)
	if err == nil && problem != "" {
		read = plain{}
		err = readWithoutTemplate(text, &read)
	}
	if err != nil {
		return err
	}
	read.Problem = problem
	*j = UpdateJob(read)
	return nil
}

// problemOf decodes a job, and returns its problem. It returns an error if the text is not JSON.
func problemOf(text []byte, into any) (string, error) {
	if len(text) > maxJob {
		return fmt.Sprintf("%d bytes of JSON are more than %d", len(text), maxJob), nil
	}
	unknown, err := strictjson.UnmarshalStrict(text, into)
	if isSyntax, _ := strictjson.SyntaxErrorOffset(err); isSyntax {
		return "", err
	}
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if err == nil {
		return "", nil
	}
	return decode.Problem(err), nil
}

// readWithoutTemplate decodes the parts of a job that the schema checks.
func readWithoutTemplate(text []byte, into any) error {
	var fields, spec map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	if err := json.Unmarshal(fields["spec"], &spec); err != nil {
		return err
	}
	delete(spec, "template")
	var err error
	if fields["spec"], err = json.Marshal(spec); err != nil {
		return err
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return strictjson.UnmarshalCaseSensitivePreserveInts(rest, into)
}
