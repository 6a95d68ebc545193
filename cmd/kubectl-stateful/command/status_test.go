package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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

func TestStatusWithoutANameShowsAllOfTheNamespace(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml", "stc.yaml")
	_, cluster, _ := x.run("status", "stc/web")
	_, replicated, _ := x.run("status", "rss/db")
	_, out, stderr := x.run("status")
	g.Expect(out).To(Equal(cluster + "\n" + replicated))
	g.Expect(stderr).To(BeEmpty())
	_, out, _ = x.run("status", "rss")
	g.Expect(out).To(Equal(replicated))

	code, out, stderr := x.run("status", "ssn")
	g.Expect(code).To(Equal(0))
	g.Expect(out).To(BeEmpty())
	g.Expect(stderr).To(Equal("No resources found in default namespace.\n"))

	var found struct{ Items []map[string]any }
	_, out, _ = x.run("status", "--output=json")
	g.Expect(json.Unmarshal([]byte(out), &found)).To(Succeed())
	g.Expect(found.Items).To(HaveLen(2))
	_, out, _ = x.run("status", "ssn", "--output=json")
	g.Expect(json.Unmarshal([]byte(out), &found)).To(Succeed())
	g.Expect(found.Items).To(BeEmpty())
	g.Expect(found.Items).NotTo(BeNil(), "a list of one item is a list")
}

func TestStatusLeavesOutKindsThatMayNotBeRead(t *testing.T) {
	g := NewWithT(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: rssv1alpha1.GroupVersion.Group, Resource: "replicatedstatefulsets"}, "", errors.New("no"))
	x := atWith(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*rssv1alpha1.ReplicatedStatefulSetList); ok {
			return forbidden
		}
		return c.List(ctx, list, opts...)
	}}, "rss.yaml", "stc.yaml")
	code, out, stderr := x.run("status")
	g.Expect(code).To(Equal(1), "an incomplete list returns an error")
	g.Expect(out).To(HavePrefix("StatefulCluster default/web"))
	g.Expect(stderr).To(HavePrefix("Error from server (Forbidden): replicatedstatefulsets.clusterlabs.org is forbidden"))
	code, out, stderr = x.run("status", "rss")
	g.Expect(code).To(Equal(1))
	g.Expect(out).To(BeEmpty())
	g.Expect(stderr).NotTo(ContainSubstring("No resources found"))
	g.Expect(stderr).To(HavePrefix("Error from server (Forbidden)"))
}

func TestItSaysWhichVersionItIs(t *testing.T) {
	g := NewWithT(t)
	x := at(t)
	for _, arg := range []string{"version", "--version"} {
		_, out, _ := x.run(arg)
		g.Expect(out).To(Equal("kubectl stateful 0.1.0\n"))
	}
}

// N7: anyone who can create events controls all their fields.
func TestN7NothingSteersATerminal(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml")
	var events corev1.EventList
	g.Expect(x.c.List(t.Context(), &events)).To(Succeed())
	g.Expect(events.Items).NotTo(BeEmpty())
	const title, red = "\x1b]0;owned\x07\x1b[2J", "\x1b[31mFAKE"
	for i, event := range events.Items {
		event.ResourceVersion, event.Name = "", fmt.Sprint("forged", i)
		event.Type, event.Reason, event.Message = red, title, title
		g.Expect(x.c.Create(t.Context(), &event)).To(Succeed())
	}
	_, out, stderr := x.run("why", "rss/db")
	g.Expect(out).To(ContainSubstring("FAKE"))
	g.Expect(out + stderr).NotTo(ContainSubstring("\x1b"))
	_, out, stderr = x.run("why", "rss/"+title)
	g.Expect(out + stderr).NotTo(ContainSubstring("\x1b"))
}

func TestErrorsAreThoseOfKubectl(t *testing.T) {
	x := at(t, "rss.yaml")
	for _, row := range []struct{ args, wants string }{
		{"status rss/none", `Error from server (NotFound): replicatedstatefulsets.clusterlabs.org "none" not found`},
		{"status deployment/db", `error: kubectl stateful does not support resource type "deployment"; supported: stc, rss, ests, ssn`},
		{"status db", `error: kubectl stateful does not support resource type "db"; supported: stc, rss, ests, ssn`},
		{"why rss", `error: an object is required, as KIND NAME or KIND/NAME, for example rss/db`},
		{"status rss/db other", `error: there is no need to specify a resource type as a separate argument`},
		{"why", `error: an object is required, as KIND NAME or KIND/NAME, for example rss/db`},
		{"switchover --to=a", `error: an object is required, as KIND NAME or KIND/NAME, for example rss/db`},
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
