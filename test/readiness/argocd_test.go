package readiness_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("update", false, "update the patch of argocd-cm")

const (
	argo           = "../../config/argocd"
	customizations = argo + "/resource_customizations"
)

// groups maps the folders of testdata to the folders of the kinds in the customizations.
var groups = map[string]string{
	"statefulcluster":       "enge.me/StatefulCluster",
	"replicatedstatefulset": "clusterlabs.org/ReplicatedStatefulSet",
	"extendedstatefulset":   "fissile.cloudfoundry.org/ExtendedStatefulSet",
	"statefulsingleton":     "apps.openshift.statefulsingleton.com/StatefulSingleton",
}

// run runs a script as Argo CD does: with the object as obj, a timeout of one second, and only the
// libraries base, package and table, and the time of os.
func run(t *testing.T, script string, object map[string]any) (any, error) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, fmt.Errorf("open the library %s: %w", name, err)
		}
	}
	l.PreloadModule(lua.OsLibName, func(l *lua.LState) int {
		l.Push(l.SetFuncs(l.NewTable(), map[string]lua.LGFunction{"date": func(l *lua.LState) int {
			l.Push(lua.LString("by " + l.CheckString(1)))
			return 1
		}}))
		return 1
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", toLua(l, object))
	if err := l.DoString(script); err != nil {
		return nil, fmt.Errorf("run the script: %w", err)
	}
	return fromLua(l.Get(-1)), nil
}

// toLua converts a JSON value to Lua.
func toLua(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		table := l.NewTable()
		for _, item := range v {
			table.Append(toLua(l, item))
		}
		return table
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, toLua(l, item))
		}
		return table
	}
	return lua.LNil
}

// fromLua converts a Lua value to JSON. An empty table becomes an empty object.
func fromLua(value lua.LValue) any {
	switch v := value.(type) {
	case lua.LBool:
		return bool(v)
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return int64(v)
	case *lua.LTable:
		if n := v.Len(); n > 0 {
			list := make([]any, 0, n)
			for i := range n {
				list = append(list, fromLua(v.RawGetInt(i+1)))
			}
			return list
		}
		object := map[string]any{}
		v.ForEach(func(key, item lua.LValue) { object[lua.LVAsString(key)] = fromLua(item) })
		return object
	}
	return nil
}

// scriptOf returns a script of a kind, from its folder in the customizations.
func scriptOf(t *testing.T, parts ...string) string {
	t.Helper()
	return textOf(t, append([]string{customizations}, parts...)...)
}

// healthScript returns the health script, which all kinds share.
func healthScript(t *testing.T) string {
	t.Helper()
	return textOf(t, argo, "health.lua")
}

func textOf(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// health returns the status and message of the health script for an object.
func health(t *testing.T, folder string, object map[string]any) (status, message string) {
	t.Helper()
	result, err := run(t, healthScript(t), object)
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	said, _ := result.(map[string]any)
	status, _ = said["status"].(string)
	message, _ = said["message"].(string)
	return status, message
}

func TestArgoCDHealth(t *testing.T) {
	for folder := range kinds {
		for _, s := range situationsOf(t, folder) {
			got, message := health(t, folder, s.object.Object)
			if got != s.argo || message == "" {
				t.Errorf("%s, %s: Argo CD returns %s (%s), want %s", folder, s.name, got, message, s.argo)
			}
		}
	}
}

// TestArgoCDHealthOfWhatIsUnseen checks the script's result before the operator has observed the
// object, and with a status of an older generation.
func TestArgoCDHealthOfWhatIsUnseen(t *testing.T) {
	well := []any{map[string]any{"type": "Ready", "status": "True", "message": "all is well"}}
	for says, object := range map[string]map[string]any{
		"without a status":                           {},
		"with an empty status":                       {"status": map[string]any{}},
		"with the default":                           {"status": map[string]any{"observedGeneration": int64(-1)}},
		"with an older generation":                   {"status": map[string]any{"observedGeneration": int64(1), "conditions": well}},
		"a status of a former operator":              {"status": map[string]any{"observedGeneration": int64(2), "conditions": []any{map[string]any{"type": "Available", "status": "True"}}}},
		"a status without conditions":                {"status": map[string]any{"observedGeneration": int64(2), "conditions": []any{}}},
		"a generation without observedGeneration -1": {"status": map[string]any{"conditions": well}},
	} {
		object["metadata"], object["spec"] = map[string]any{"generation": int64(2)}, map[string]any{}
		for folder := range kinds {
			if got, message := health(t, folder, object); got != "Progressing" || message == "" {
				t.Errorf("%s %s is %s (%s), want Progressing", folder, says, got, message)
			}
		}
	}
}

// actionsOf returns the actions that Argo CD offers for an object of a kind.
func actionsOf(t *testing.T, folder string, object map[string]any) (offered []string) {
	t.Helper()
	result, err := run(t, scriptOf(t, groups[folder], "actions", "discovery.lua"), object)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := result.(map[string]any)
	for name, action := range all {
		if settings, _ := action.(map[string]any); settings["disabled"] != true {
			offered = append(offered, name)
		}
	}
	slices.Sort(offered)
	return offered
}

func TestArgoCDActions(t *testing.T) {
	const when = "by !%Y-%m-%dT%XZ"
	for _, r := range []struct {
		folder, situation string
		offered           []string
		action            string
		changed           []string
		want              string
	}{
		{"extendedstatefulset", "the upgrade is Stale, and the old version serves", []string{"restart"}, "restart", []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}, when},
		{"replicatedstatefulset", "the set is healthy", []string{"pause", "switchover"}, "pause", []string{"spec", "paused"}, "true"},
		{"replicatedstatefulset", "the set is healthy", []string{"pause", "switchover"}, "switchover", []string{"metadata", "annotations", "clusterlabs.org/switchover-to"}, "rss-db-1"},
		{"replicatedstatefulset", "the set is paused and healthy", []string{"resume"}, "resume", []string{"spec", "paused"}, "false"},
		{"replicatedstatefulset", "the node of the only member is unreachable", []string{"pause"}, "pause", []string{"spec", "paused"}, "true"},
	} {
		all := situationsOf(t, r.folder)
		i := slices.IndexFunc(all, func(s situation) bool { return s.name == r.situation })
		if i < 0 {
			t.Fatalf("%s has no situation %q", r.folder, r.situation)
		}
		object := all[i].object.Object
		if offered := actionsOf(t, r.folder, object); !slices.Equal(offered, r.offered) {
			t.Errorf("%s, %s: it offers %v, want %v", r.folder, r.situation, offered, r.offered)
		}
		result, err := run(t, scriptOf(t, groups[r.folder], "actions", r.action, "action.lua"), object)
		if err != nil {
			t.Errorf("%s, %s: %v", r.folder, r.action, err)
			continue
		}
		var at = result
		for _, key := range r.changed {
			next, _ := at.(map[string]any)
			at = next[key]
		}
		if got := fmt.Sprint(at); got != r.want {
			t.Errorf("%s, %s: %s is %s, want %s", r.folder, r.action, strings.Join(r.changed, "."), got, r.want)
		}
	}
}

// TestConfigMap verifies that the patch of argocd-cm is generated from the scripts.
func TestConfigMap(t *testing.T) {
	data := map[string]string{}
	for _, group := range groups {
		key := strings.ReplaceAll(group, "/", "_")
		data["resource.customizations.health."+key] = healthScript(t)
		if actions := actionsIn(t, group); actions != "" {
			data["resource.customizations.actions."+key] = actions
		}
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "argocd-cm", "labels": map[string]string{"app.kubernetes.io/part-of": "argocd"}}, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	file, patch := filepath.Join(argo, "argocd-cm.yaml"), "# Generated from health.lua and resource_customizations; see kustomization.yaml.\n"+string(text)
	if *rewrite {
		if err := os.WriteFile(file, []byte(patch), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || string(have) != patch {
		t.Errorf("%s differs from the scripts, %v; update it with -update", file, err)
	}
}

// actionsIn returns the actions of a kind in the ConfigMap's format, or "" if there are none.
func actionsIn(t *testing.T, group string) string {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(customizations, group, "actions", "*", "action.lua"))
	if err != nil {
		t.Fatal(err)
	}
	if len(scripts) == 0 {
		return ""
	}
	byName := map[string]string{}
	for _, script := range scripts {
		name := filepath.Base(filepath.Dir(script))
		byName[name] = scriptOf(t, group, "actions", name, "action.lua")
	}
	var definitions []map[string]string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		definitions = append(definitions, map[string]string{"name": name, "action.lua": byName[name]})
	}
	text, err := yaml.Marshal(map[string]any{"discovery.lua": scriptOf(t, group, "actions", "discovery.lua"), "definitions": definitions})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
