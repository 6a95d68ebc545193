package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// switchedPackage is the import path of the package that a program with all mutants asks.
const switchedPackage = "github.com/stateful-operator/stateful-operator/test/faults/mutant/switched"

// overlay writes the files that `go build -overlay` replaces to build mutants, and returns the path of
// the list of them. If they are switched, the program runs the one that the environment names, else
// all of them.
func overlay(into string, mutants []mutant, areSwitched bool) (string, error) {
	into, err := filepath.Abs(into)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for folder, its := range byFolder(mutants) {
		all, err := parse(folder)
		if err != nil {
			return "", err
		}
		guard, importing := func(string) string { return "true" }, ""
		if areSwitched {
			guard = func(name string) string { return fmt.Sprintf("switched.On(%q)", name) }
			importing = fmt.Sprintf("%q", switchedPackage)
		}
		for _, m := range its {
			for i := range m.edits {
				if err := apply(all, &m.edits[i], guard(m.name)); err != nil {
					return "", fmt.Errorf("%s: %w", folder, err)
				}
			}
		}
		for _, s := range all {
			if len(s.inserts) == 0 {
				continue
			}
			from, err := filepath.Abs(s.path)
			if err != nil {
				return "", err
			}
			to := filepath.Join(into, strings.ReplaceAll(s.path, string(filepath.Separator), "-")+".txt")
			if err := os.WriteFile(to, []byte(s.edited(importing)), 0o644); err != nil {
				return "", err
			}
			replace[from] = to
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	at := filepath.Join(into, "overlay.json")
	return at, os.WriteFile(at, list, 0o644)
}

func byFolder(mutants []mutant) map[string][]mutant {
	folders := map[string][]mutant{}
	for _, m := range mutants {
		folders[m.folder] = append(folders[m.folder], m)
	}
	return folders
}
