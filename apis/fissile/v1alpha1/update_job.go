package v1alpha1

import (
	"encoding/json"
	"fmt"

	strictjson "sigs.k8s.io/json"

	"github.com/stateful-operator/stateful-operator/apis/internal/decode"
)

// longestJob is how long a job may be, as JSON. A list of empty objects becomes two
// hundred times as long when it is read, and its length is bounded by nothing else.
const longestJob = 128 << 10

// UnmarshalJSON reads a job. The schema says nothing of the template but its quantities, or
// the CustomResourceDefinition would hold three descriptions of a pod. So a template may be
// one that Kubernetes' type cannot hold. That must not be an error: who lists objects would
// get none, of any namespace, because of one. Problem says it instead, and then the template
// is empty.
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

// problemOf reads a job, and says what is wrong with it. It is an error if it is no JSON.
func problemOf(text []byte, into any) (string, error) {
	if len(text) > longestJob {
		return fmt.Sprintf("%d bytes of JSON are more than %d", len(text), longestJob), nil
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

// readWithoutTemplate reads what the schema knows of a job.
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
