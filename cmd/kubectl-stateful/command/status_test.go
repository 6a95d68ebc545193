package command

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

func TestStatusShowsATreeOfEachKind(t *testing.T) {
	for file, object := range map[string]string{"rss": "rss/db", "stc": "statefulclusters/web", "ests": "ExtendedStatefulSet/shop", "ssn": "ssn/mailer"} {
		t.Run(file, func(t *testing.T) {
			code, out, stderr := at(t, file+".yaml").run("status", object)
			if code != 0 {
				t.Fatal(stderr)
			}
			golden(t, file+".status.txt", out)
		})
	}
}

func TestStatusForPrograms(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml")
	_, out, _ := x.run("status", "rss", "db", "--output=json")
	var fromJSON, fromYAML map[string]any
	g.Expect(json.Unmarshal([]byte(out), &fromJSON)).To(Succeed())
	g.Expect(fromJSON).To(HaveKeyWithValue("phase", "Running"))
	g.Expect(fromJSON["members"]).To(HaveLen(3))
	_, out, _ = x.run("status", "rss", "db", "-o", "yaml")
	g.Expect(yaml.Unmarshal([]byte(out), &fromYAML)).To(Succeed())
	g.Expect(fromYAML).To(Equal(fromJSON))
	code, _, stderr := x.run("status", "rss", "db", "-o", "wide")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(ContainSubstring(`error: unable to match a printer suitable for the output format "wide"`))
}

func TestWhyShowsWhatTheOperatorDid(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml")
	_, out, _ := x.run("why", "rss/db")
	golden(t, "rss.why.txt", out)
	_, out, _ = x.run("why", "rss/db", "--last=1")
	g.Expect(out).To(ContainSubstring("MemberFailed"))
	g.Expect(out).NotTo(ContainSubstring("Promoted"), "it is older")
	_, out, _ = x.run("why", "rss/db", "--output=json")
	var found struct{ Decisions, Conditions []map[string]any }
	g.Expect(json.Unmarshal([]byte(out), &found)).To(Succeed())
	g.Expect(found.Decisions).To(HaveLen(2))
	g.Expect(found.Decisions[1]).To(HaveKeyWithValue("count", float64(3)), "what was said by two is one")
	g.Expect(found.Conditions).To(HaveLen(6))
}

func TestErrorsAreThoseOfKubectl(t *testing.T) {
	x := at(t, "rss.yaml")
	for _, row := range []struct{ args, wants string }{
		{"status rss/none", `Error from server (NotFound): replicatedstatefulsets.clusterlabs.org "none" not found`},
		{"status deployment/db", `error: kubectl stateful knows no resource type "deployment"; it knows stc, rss, ests, ssn`},
		{"status db", `error: an object is needed, as KIND NAME or KIND/NAME, for example rss/db`},
		{"status rss/db other", `error: there is no need to specify a resource type as a separate argument`},
		{"status", `error: accepts between 1 and 2 arg(s), received 0`},
		{"nonsense", `error: unknown command "nonsense" for "kubectl stateful"`},
		{"switchover db", `error: required flag(s) "to" not set`},
	} {
		t.Run(row.args, func(t *testing.T) {
			g := NewWithT(t)
			code, out, stderr := x.run(strings.Fields(row.args)...)
			g.Expect(code).To(Equal(1))
			g.Expect(out).To(BeEmpty())
			g.Expect(stderr).To(HavePrefix(row.wants))
		})
	}
}

func TestNamesAreCompleted(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml", "stc.yaml")
	_, out, _ := x.run("__complete", "status", "")
	g.Expect(out).To(HavePrefix("stc\nrss\nests\nssn\n"))
	_, out, _ = x.run("__complete", "status", "stc", "")
	g.Expect(out).To(HavePrefix("web\n"))
	_, out, _ = x.run("__complete", "switchover", "--to=rss-db-2", "")
	g.Expect(out).To(HavePrefix("db\n"))
}

func TestAMessageCannotSteerATerminal(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml")
	x.says("Promoted", "rss-db-1 is \x1b[2Jprimary\r\n")
	x.set(func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Status.Conditions[0].Message = "\x1b]0;title\x07" })
	for _, command := range []string{"why", "status"} {
		_, out, _ := x.run(command, "rss/db")
		g.Expect(out).NotTo(ContainSubstring("\x1b"))
		g.Expect(out).NotTo(ContainSubstring("\r"))
	}
}
