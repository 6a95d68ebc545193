package controllers_test

import (
	"maps"
	"strings"
	"testing"
)

var long = strings.Repeat("\n", maxFuncLines)

// checkRows show that each check can fail, and what it accepts.
var checkRows = []struct {
	sentence, path, text string
	check                func(source) []string
	want                 string // part of the only fault; empty for none
}{
	{"a file name that is not allowed in a kind", "controllers/one/cleverness.go", "package one", checkFileName, "may not have cleverness.go"},
	{"a folder inside a kind", "controllers/one/deep/plan.go", "package deep", checkFileName, "the packages of a kind are"},
	{"a test in a folder inside a kind", "controllers/one/deep/plan_test.go", "package deep", checkFileName, "the packages of a kind are"},
	{"a file of a rule", "controllers/one/rules/lost.go", "package rules", checkFileName, ""},
	{"one of several observe files", "controllers/one/observe/config.go", "package observe", checkFileName, ""},
	{"a test file", "controllers/one/story_test.go", "package one", checkFileName, ""},
	{"a file of a flat kind", "controllers/one/plan_lost.go", "package one", checkFileName, "may not have plan_lost.go"},
	{"a package of a kind that imports a later one", "controllers/one/facts/derive.go", `package facts; import _ "` + module + `controllers/one/rules"`, checkRooms, "facts imports rules"},
	{"a package of a kind that imports an earlier one", "controllers/one/rules/lost.go", `package rules; import _ "` + module + `controllers/one/facts"`, checkRooms, ""},
	{"facts that are derived from the record", "controllers/one/facts/derive.go", `package facts; import _ "` + module + `controllers/one/record"`, checkRooms, ""},
	{"a test of a package of a kind that imports a later one", "controllers/one/facts/derive_test.go", `package facts_test; import _ "` + module + `controllers/one/rules"`, checkRooms, ""},
	{"facts with a client", "controllers/one/facts/derive.go", `package facts; import "sigs.k8s.io/controller-runtime/pkg/client"; var _ client.Reader`, checkPure, "pkg/client"},
	{"a reporter with a context", "controllers/one/status/events.go", `package status; import "context"; var _ context.Context`, checkPure, ""},
	{"a reader with a client", "controllers/one/observe/reader.go", `package observe; import "sigs.k8s.io/controller-runtime/pkg/client"; var _ client.Reader`, checkPure, ""},
	{"a fixture of tests", "controllers/one/fixture/world.go", `package fixture; import _ "` + module + `controllers/one/webhooks"`, checkRooms, ""},
	{"a folder for the fixture of tests", "controllers/one/fixture/world.go", "package fixture", checkFileName, ""},
	{"a test that imports the fixture", "controllers/one/rules/lost_test.go", `package rules_test; import _ "` + module + `controllers/one/fixture"`, checkFixtureImports, ""},
	{"a rule that imports the fixture", "controllers/one/rules/lost.go", `package rules; import _ "` + module + `controllers/one/fixture"`, checkFixtureImports, "for tests only"},
	{"a file next to the kinds", "controllers/setup.go", "package controllers", checkFileName, ""},
	{"a file of the shared packages", "controllers/internal/action/action.go", "package action", checkFileName, ""},

	{"a plan that uses a context", "controllers/one/rules/plan.go", `package rules; import "context"; var _ context.Context`, checkPure, "imports context"},
	{"a rule that uses a client", "controllers/one/rules/lost.go", `package rules; import "sigs.k8s.io/controller-runtime/pkg/client"; var _ client.Reader`, checkPure, "pkg/client"},
	{"a status that uses client-go", "controllers/one/status/conditions.go", `package status; import "k8s.io/client-go/kubernetes"; var _ kubernetes.Interface`, checkPure, "k8s.io/client-go/kubernetes"},
	{"a build that uses random numbers", "controllers/one/children/build.go", `package children; import "math/rand/v2"; var _ = rand.Int()`, checkPure, "math/rand/v2"},
	{"a validation that reads files", "controllers/one/spec/validate.go", `package spec; import "os"; var _ = os.Args`, checkPure, "imports os"},
	{"an injection that uses the clock", "controllers/one/children/inject.go", `package children; import "time"; var _ = time.Now()`, checkPure, "time.Now"},
	{"a clock imported under another name", "controllers/one/rules/plan.go", `package rules; import clock "time"; var _ = clock.Since(clock.Time{})`, checkPure, "time.Since"},
	{"a plan with durations", "controllers/one/rules/plan.go", `package rules; import "time"; const second = time.Second`, checkPure, ""},
	{"a field of the name Now", "controllers/one/rules/plan.go", `package rules; func f(world struct{ Now int }) int { return world.Now }`, checkPure, ""},
	{"an observer that uses a context", "controllers/one/observe/reader.go", `package observe; import "context"; var _ context.Context`, checkPure, ""},
	{"a test of a rule that uses a context", "controllers/one/rules/plan_test.go", `package rules; import "context"; var _ context.Context`, checkPure, ""},

	{"a kind that imports another kind", "controllers/one/plan.go", `package one; import _ "` + module + `controllers/two"`, checkKindImports, "imports the kind two"},
	{"a kind that imports a shared package", "controllers/one/plan.go", `package one; import _ "` + module + `controllers/internal/action"`, checkKindImports, ""},
	{"a shared package that imports a kind's types", "controllers/internal/action/action.go", `package action; import _ "` + module + `apis/enge/v1alpha1"`, checkInternalImports, "does not import kinds"},
	{"a kind that imports its types", "controllers/one/plan.go", `package one; import _ "` + module + `apis/enge/v1alpha1"`, checkInternalImports, ""},

	{"promises of a kind that import those of another kind", "scorecard/promises/one/drain.go", `package one; import _ "` + module + `scorecard/promises/two"`, checkPromiseImports, "imports the promises of two"},
	{"promises of a kind that import the kit", "scorecard/promises/one/drain.go", `package one; import _ "` + module + `scorecard/promises/kit"`, checkPromiseImports, ""},
	{"a kit that imports promises of a kind", "scorecard/promises/kit/nodes.go", `package kit; import _ "` + module + `scorecard/promises/one"`, checkPromiseImports, "imports the promises of one"},
	{"promises of the operator that import those of a kind", "scorecard/promises/operator/backup.go", `package operator; import _ "` + module + `scorecard/promises/one"`, checkPromiseImports, ""},
	{"the list of all promises", "scorecard/promises/promises.go", `package promises; import _ "` + module + `scorecard/promises/one"`, checkPromiseImports, ""},

	{"a command-line tool that imports the operator", "cmd/kubectl-x/main.go", `package main; import _ "` + module + `controllers/one"`, checkCommandImports, "may import apis, but not the operator"},
	{"a command-line tool that imports the facade", "cmd/kubectl-x/main.go", `package main; import _ "` + module + `controllers/plugin"`, checkCommandImports, ""},
	{"a facade that imports a manager", "controllers/plugin/plugin.go", `package plugin; import _ "sigs.k8s.io/controller-runtime"`, checkManagerless, "must not depend on a manager"},
	{"a file of the facade", "controllers/plugin/other.go", "package plugin", checkFileName, ""},
	{"a simulation that imports stories of tests", "controllers/one/simulate/simulate.go", `package simulate; import _ "` + module + `controllers/internal/simtest"`, checkFixtureImports, "for tests only"},
	{"stories of tests that import golden files", "controllers/internal/simtest/stories.go", `package simtest; import _ "` + module + `controllers/internal/golden"`, checkFixtureImports, ""},
	{"a command-line tool that imports types and its own packages", "cmd/kubectl-x/main.go", `package main; import _ "` + module + `apis/enge/v1alpha1"; import _ "` + module + `cmd/kubectl-x/tree"`, checkCommandImports, ""},

	{"an agent that imports the operator", "agent/main.go", `package main; import _ "` + module + `controllers/one"`, checkAgentImports, "independent of the operator"},
	{"an agent that imports types", "agent/main.go", `package main; import _ "` + module + `apis/enge/v1alpha1"`, checkAgentImports, "independent of the operator"},
	{"an agent that imports its own packages", "agent/main.go", `package main; import _ "` + module + `agent/driver"; import _ "` + module + `gate/selfcopy"`, checkAgentImports, ""},
	{"a kind that imports the agent", "controllers/one/plan.go", `package one; import _ "` + module + `agent/driver"`, checkAgentImports, "only settings"},
	{"a kind that imports settings of the agent", "controllers/one/plan.go", `package one; import _ "` + module + `agent/postgresql/settings"`, checkAgentImports, ""},

	{"a shared package that imports a manager", "controllers/internal/text/text.go", `package text; import _ "sigs.k8s.io/controller-runtime/pkg/manager"`, checkManagerless, "must not depend on a manager"},
	{"what decides and imports controller-runtime", "controllers/one/observe/read.go", `package observe; import _ "sigs.k8s.io/controller-runtime"`, checkManagerless, "must not depend on a manager"},
	{"what decides and imports a package with a manager", "controllers/one/observe/read.go", `package observe; import _ "` + module + `controllers/internal/follow"`, checkManagerless, "must not depend on a manager"},
	{"what decides and imports a client", "controllers/one/observe/read.go", `package observe; import _ "sigs.k8s.io/controller-runtime/pkg/client"`, checkManagerless, ""},
	{"a package that adds something to a manager", "controllers/internal/follow/follow.go", `package follow; import _ "sigs.k8s.io/controller-runtime/pkg/manager"`, checkManagerless, ""},
	{"a controller that imports a manager", "controllers/one/controller.go", `package one; import _ "sigs.k8s.io/controller-runtime/pkg/manager"`, checkManagerless, ""},
	{"webhooks that import a manager", "controllers/one/webhooks/webhooks.go", `package webhooks; import _ "sigs.k8s.io/controller-runtime"`, checkManagerless, ""},

	{"types that import a client", "apis/enge/v1alpha1/names.go", `package v1alpha1; import _ "sigs.k8s.io/controller-runtime/pkg/client"`, checkAPIImports, "pkg/client"},
	{"types that import a kind", "apis/enge/v1alpha1/names.go", `package v1alpha1; import _ "` + module + `controllers/internal/action"`, checkAPIImports, "internal/action"},
	{"types that import types", "apis/enge/v1alpha1/names.go", `package v1alpha1; import _ "k8s.io/api/core/v1"; import _ "strings"`, checkAPIImports, ""},
	{"an example that imports a client", "apis/example_test.go", `package apis_test; import _ "sigs.k8s.io/yaml"`, checkAPIImports, ""},

	{"a package named utils", "controllers/internal/text/text.go", "package utils", checkVagueNames, "package name utils"},
	{"a test package named misc", "controllers/internal/text/text_test.go", "package misc_test", checkVagueNames, "package name misc_test"},
	{"a file named helpers", "scorecard/pod_helpers.go", "package scorecard", checkVagueNames, `"helpers"`},
	{"a package of the apis named types", "apis/enge/v1alpha1/types.go", "package v1alpha1", checkVagueNames, ""},
	{"a package whose name only begins with common", "controllers/internal/commonality/commonality.go", "package commonality", checkVagueNames, ""},

	{"a condition with mixed operators", "controllers/one/plan.go", "package one; func f(a, b, c bool) bool { return a || b && c }", checkMixed, "mixes && and ||"},
	{"mixed operators in parentheses", "controllers/one/plan.go", "package one; func f(a, b, c bool) bool { return a || (b && c) }", checkMixed, ""},
	{"mixed operators in a test", "controllers/one/plan_test.go", "package one; func f(a, b, c bool) bool { return a || b && c }", checkMixed, ""},
	{"a dense function", "gate/main.go", "package main\nfunc f(a bool) bool {\n" + strings.Repeat("if a { return a }\n", 8) + "return a\n}", checkDense, "8 decisions in 11 lines"},
	{"a function with enough lines", "gate/main.go", "package main\nfunc f(a bool) bool {\n" + strings.Repeat("if a {\nreturn a\n}\n", 8) + "return a\n}", checkDense, ""},
	{"a getter that changes the plan", "controllers/one/plan.go", "package one; func ready(p *plan) bool { p.LookAgain(1); return true }", checkAnswers, "ready returns a value"},
	{"a getter that sets a field", "controllers/one/plan.go", "package one; func ready(p *plan) bool { p.held = nil; return true }", checkAnswers, "ready returns a value"},
	{"a getter that only reads", "controllers/one/plan.go", "package one; func ready(p *plan) bool { return p.held != nil }", checkAnswers, ""},
	{"a rule", "controllers/one/plan.go", "package one; func start(f *facts, p *plan) { p.LookAgain(1) }", checkAnswers, ""},

	{"a long function", "gate/main.go", "package main\nfunc long() {" + long + "}\n", checkLengths, "long has 71 lines"},
	{"a function of the max length", "gate/main.go", "package main\nfunc short() {" + long[1:] + "}\n", checkLengths, ""},
	{"a long file", "gate/main.go", "package main\n" + strings.Repeat("\n", maxFileLines), checkLengths, "has 601 lines"},
	{"a long generated file", "gate/zz_generated.go", "// Code generated by hand. DO NOT EDIT.\npackage main\n" + strings.Repeat("\n", maxFileLines), checkLengths, ""},
}

// A check that never finds anything looks like a tidy tree.
func TestChecksFindWhatTheyLookFor(t *testing.T) {
	for _, row := range checkRows {
		t.Run(row.sentence, func(t *testing.T) {
			parsed, err := parse(row.path, row.text)
			if err != nil {
				t.Fatal(err)
			}
			faults := row.check(parsed)
			switch {
			case row.want == "" && len(faults) > 0:
				t.Errorf("found %q, want no fault", faults)
			case row.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], row.want)):
				t.Errorf("found %q, want one fault with %q", faults, row.want)
			}
		})
	}
}

func TestAKindThatLacksAFileIsFound(t *testing.T) {
	whole := map[string]string{"controllers/setup.go": `package controllers; import _ "` + module + `controllers/one"`}
	for _, file := range neededFiles {
		whole["controllers/one/"+file] = "package one"
	}
	for _, row := range []struct {
		sentence, path, text string // no text: the file is missing
		want                 string
	}{
		{"a complete kind", "controllers/one/webhooks/webhooks.go", "package webhooks", ""},
		{"a kind that lacks a file", "controllers/one/rules/plan.go", "", "controllers/one has no rules/plan.go"},
		{"a kind without a controller yet", "controllers/two/doc.go", "package two", ""},
		{"a tree without registered kinds", "controllers/setup.go", "package controllers", "controllers/setup.go registers no kind"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			texts := maps.Clone(whole)
			texts[row.path] = row.text
			var sources []source
			for path, text := range texts {
				if text == "" {
					continue
				}
				parsed, err := parse(path, text)
				if err != nil {
					t.Fatal(err)
				}
				sources = append(sources, parsed)
			}
			if got := strings.Join(missingFiles(sources), ", "); got != row.want {
				t.Errorf("found %q, want %q", got, row.want)
			}
		})
	}
}
