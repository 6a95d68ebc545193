package policy

import (
	"testing"

	"github.com/google/cel-go/cel"
)

func TestAnnotationCEL(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(AnnotationCEL("object", "example.com/a"))
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name     string
		metadata map[string]any
		want     string
	}{
		{"an annotation", map[string]any{"annotations": map[string]string{"example.com/a": "b"}}, "b"},
		{"another annotation", map[string]any{"annotations": map[string]string{"example.com/b": "b"}}, ""},
		{"no annotations", map[string]any{}, ""},
	} {
		got, _, err := program.Eval(map[string]any{"object": map[string]any{"metadata": row.metadata}})
		if err != nil || got.Value() != row.want {
			t.Errorf("%s: %v, %v", row.name, got, err)
		}
	}
}
