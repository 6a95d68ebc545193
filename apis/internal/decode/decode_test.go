package decode

import (
	"strings"
	"testing"
)

type part struct {
	Port int32  `json:"port"`
	Name string `json:"name"`
}

// N1: a value that the type cannot hold is not an error.
func TestPart(t *testing.T) {
	for _, row := range []struct {
		name, text, problem string
		want                part
		fails               bool
	}{
		{"a valid object", `{"port": 1, "name": "a"}`, "", part{1, "a"}, false},
		{"a number out of range", `{"name": "a", "port": 99999999999}`, "cannot unmarshal number 99999999999", part{}, false},
		{"a string in a number field", `{"port": "a"}`, "cannot unmarshal string", part{}, false},
		{"a field name in another case", `{"Port": 1}`, "", part{}, false},
		{"an unknown field", `{"other": 1}`, "", part{}, false},
		{"a long string", `{"port": "` + strings.Repeat("ö", 1000) + `"}`, "cannot unmarshal", part{}, false},
		{"invalid JSON", `{"port" 1}`, "", part{}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got part
			problem, err := Part([]byte(row.text), &got)
			if !strings.Contains(problem, row.problem) || (row.problem == "") != (problem == "") || len(problem) > maxProblem {
				t.Errorf("problem %q", problem)
			}
			if (err != nil) != row.fails || !row.fails && got != row.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
