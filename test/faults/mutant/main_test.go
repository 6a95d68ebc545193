package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestSwitches(t *testing.T) {
	t.Chdir("../../..")
	rules, err := find("controllers")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range rules {
		names[r.name] = true
		if r.says == "" {
			t.Errorf("%s: no comment says what the operator does without %s", r.file, r.name)
		}
	}
	for target, wanted := range soaks {
		for _, name := range wanted {
			if !names[name] {
				t.Errorf("%s must fail without %s, which has no switch", target, name)
			}
		}
	}
}

func TestOverlay(t *testing.T) {
	t.Chdir("../../..")
	folder := t.TempDir()
	if err := run([]string{"build", "no-fence", folder}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(folder + "/without.txt")
	if err != nil || !strings.Contains(string(text), `const without = "no-fence"`) {
		t.Errorf("it says %s, %v", text, err)
	}
	if err := run([]string{"build", "no-such-rule", folder}); err == nil {
		t.Error("a rule that there is not was built")
	}
}

func TestSaid(t *testing.T) {
	lines := []string{"// before it", `	if mutant.Is("a") {`, `	x := mutant.Is("b") // at its end`, `	mutant.Is("c")`}
	var got []string
	for i := range lines[1:] {
		got = append(got, said(lines, i+1))
	}
	if want := []string{"before it", "at its end", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
