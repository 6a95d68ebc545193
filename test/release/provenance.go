package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Types of an in-toto statement and the SLSA predicate: https://in-toto.io/Statement/v1 and
// https://slsa.dev/spec/v1.0/provenance. Optional fields that would differ between runs, such as the
// start time, are omitted.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     predicate  `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	predicate struct {
		BuildDefinition buildDefinition `json:"buildDefinition"`
		RunDetails      runDetails      `json:"runDetails"`
	}
	buildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	}
	runDetails struct {
		Builder builder `json:"builder"`
	}
	builder struct {
		ID string `json:"id"`
	}
)

// writeProvenance writes from which commit, and how, each file and image of the release was built.
func (r *Release) writeProvenance(_ context.Context, made images) error {
	sums, err := r.sums()
	if err != nil {
		return err
	}
	said := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, file := range sums {
		said.Subject = append(said.Subject, resource{Name: file.name, Digest: map[string]string{"sha256": file.sum}})
	}
	for _, repository := range sorted(made) {
		name, digest, _ := strings.Cut(made[repository], "@sha256:")
		said.Subject = append(said.Subject, resource{Name: name, Digest: map[string]string{"sha256": digest}})
	}
	said.Predicate.BuildDefinition = buildDefinition{
		BuildType:            r.Source + "/blob/main/docs/versions.md#how-a-release-is-made",
		ExternalParameters:   map[string]string{"version": r.Version, "registry": r.Registry, "source": "git+" + r.Source, "commit": r.Commit},
		InternalParameters:   map[string]string{"go": runtime.Version(), "architectures": strings.Join(r.Architectures, ",")},
		ResolvedDependencies: []resource{{URI: "git+" + r.Source, Digest: map[string]string{"gitCommit": r.Commit}}},
	}
	said.Predicate.RunDetails.Builder.ID = r.Source + "/blob/main/Makefile"
	text, err := json.MarshalIndent(said, "", "  ")
	if err != nil {
		return err
	}
	return r.write("stateful-operator-"+r.Version+".provenance.json", append(text, '\n'))
}

// summed is a file of the release and its SHA-256.
type summed struct{ name, sum string }

// sums returns the checksums of all existing files of the release, by name.
func (r *Release) sums() (all []summed, err error) {
	entries, err := os.ReadDir(r.Out)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(r.Out, entry.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		all = append(all, summed{entry.Name(), hex.EncodeToString(sum[:])})
	}
	return all, nil
}
