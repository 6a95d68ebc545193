package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// unpack returns the files of an archive, by name without the folder.
func unpack(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(text)
	}
}

func everything(t *testing.T) *terminal {
	x := at(t, "rss.yaml", "stc.yaml", "ests.yaml", "ssn.yaml", "operator.yaml")
	x.logs = map[string]string{"stateful-operator-system/stateful-operator-1/manager": "it works\n"}
	return x
}

func TestGatherLeavesOutWhatIsNobodysBusiness(t *testing.T) {
	g := NewWithT(t)
	_, out, stderr := everything(t).run("gather", "--file=-")
	g.Expect(stderr).To(BeEmpty())
	files := unpack(t, []byte(out))
	for name, text := range files {
		g.Expect(text).NotTo(ContainSubstring("pa55word"), name)
		g.Expect(strings.Contains(name, "secret") || strings.Contains(name, "configmap")).To(BeFalse(), name)
	}
	leaky := files["namespace/deployments/leaky.yaml"]
	g.Expect(leaky).To(ContainSubstring("name: PASSWORD"), "names of environment variables are kept")
	g.Expect(leaky).To(ContainSubstring("secretKeyRef"), "fields other than values are kept")
	g.Expect(leaky).To(And(ContainSubstring("enge.me/mine: stays"), ContainSubstring(`deployment.kubernetes.io/revision: "7"`)))
	g.Expect(leaky).To(ContainSubstring("kapp.k14s.io/original: (omitted)"), "N8 annotations of other tools")
	g.Expect(files["namespace/controllerrevisions/leaky-1.yaml"]).To(ContainSubstring("name: PASSWORD"))
}

func TestGatherHasWhatAMaintainerNeeds(t *testing.T) {
	g := NewWithT(t)
	_, out, _ := everything(t).run("gather", "--file=-")
	files := unpack(t, []byte(out))
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	golden(t, "gather.txt", strings.Join(names, "\n")+"\n")
	g.Expect(files["operator/logs/stateful-operator-1.manager.log"]).To(Equal("it works\n"))
	g.Expect(files["objects/replicatedstatefulsets/db.status.txt"]).To(ContainSubstring("0 of 1 primaries"))
	g.Expect(files["objects/replicatedstatefulsets/db.why.yaml"]).To(ContainSubstring("MemberFailed"))
}

func TestGatherKeepsTheEnvironmentOnRequest(t *testing.T) {
	g := NewWithT(t)
	_, out, _ := everything(t).run("gather", "--file=-", "--keep-env")
	files := unpack(t, []byte(out))
	g.Expect(files["namespace/deployments/leaky.yaml"]).To(ContainSubstring("pa55word"))
	g.Expect(files["namespace/deployments/leaky.yaml"]).To(ContainSubstring("note: (omitted)"))
	g.Expect(files["README.txt"]).To(ContainSubstring("MAY CONTAIN PASSWORDS"))
}

func TestGatherWritesAFileForItsOwner(t *testing.T) {
	g := NewWithT(t)
	name := filepath.Join(t.TempDir(), "it.tar.gz")
	x := everything(t)
	x.logs = nil
	_, out, stderr := x.run("gather", "--file="+name)
	g.Expect(out).To(Equal(name + "\n"))
	g.Expect(stderr).To(ContainSubstring("cannot be read: operator/logs/stateful-operator-1.manager.log: no log"))
	info, err := os.Stat(name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	packed, err := os.ReadFile(name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unpack(t, packed)["unread.txt"]).To(ContainSubstring("no log"))
	code, _, _ := x.run("gather", "--file="+name)
	g.Expect(code).To(Equal(1), "an existing file is not overwritten")
}
