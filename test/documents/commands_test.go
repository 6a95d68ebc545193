package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const root = "../.."

// pages are the pages whose commands are run.
var pages = []string{"README.md", "docs/install.md", "docs/guide/uninstall.md"}

// here is the name of the test that runs commands unchanged on a local cluster.
const here = "TestPromisesFirstContact"

// runBy maps prefixes of commands to the test or the make targets that run them. The longest prefix is
// used. Substitutions are in substitute and in these tests.
var runBy = map[string]map[string]string{
	"README.md": {
		"make run":                         "make run", // it is what CONTRIBUTING asks for
		"make test":                        "make test",
		"make image IMAGE=":                here,
		"make deploy IMAGE=":               here,
		"kubectl apply -f config/samples/": here,
		"kubectl wait ":                    here,
		"kubectl get stc,":                 here,
	},
	"docs/guide/uninstall.md": {
		"make undeploy":                                     here,
		"kubectl annotate ":                                 here,
		"kubectl delete statefulsingletons,":                here,
		"kubectl delete deployment ":                        here,
		"kubectl delete validatingadmissionpolicybindings,": here,
		"kubectl get pods,stateful":                         here,
	},
	"docs/install.md": {
		"go run ./test/release/cmd/release push":            "TestWhatIsPushedIsWhatWasReleased", // with a registry in the test
		"export REGISTRY=":                                  here,
		"make image ":                                       here,
		"make bundle catalog ":                              "make test-olm", // with its local registry
		"make bundle-image ":                                "OLM-3 a catalog's image and bundles' images",
		"make catalog-image ":                               "OLM-3 a catalog's image and bundles' images",
		"kubectl apply -f - <<EOF\napiVersion: operators":   "TestOLM", // olm.Subscription has the same objects
		"kubectl get clusterserviceversions":                "TestOLM",
		"kubectl patch catalogsources":                      "TestOLM",
		"kubectl annotate statefulsingletons":               "TestOLM", // leaveAsDocumented runs the block
		"kubectl delete statefulsingletons,":                "TestOLM",
		"kubectl delete subscriptions":                      "TestOLM",
		"kubectl delete clusterserviceversions":             "TestOLM",
		"kubectl wait --for=delete pod":                     "TestOLM",
		"kubectl delete validatingadmissionpolicybindings,": "TestOLM",
		"kubectl delete crd ":                               "TestOLM",
		"kubectl delete clusterrole --selector":             "TestOLM",
		"kubectl delete namespace stateful-operator-system": "TestOLM",
		"kubectl delete --ignore-not-found lease/":          here,
		"kubectl delete catalogsources":                     "TestOLM",
		"kubectl apply -f - <<EOF\napiVersion: olm.":        untried,
		"kubectl wait --for=condition=Installed":            untried,
		"kubectl delete clusterextension":                   untried,
		"kubectl delete clusterrolebinding":                 untried,
		"kubectl delete clustercatalog":                     untried,
		"kubectl create namespace stateful-operator-system": "OLM-3 operator-sdk run bundle, and bundle-upgrade",
		"operator-sdk run bundle ":                          "OLM-3 operator-sdk run bundle, and bundle-upgrade",
		"operator-sdk run bundle-upgrade ":                  "OLM-3 operator-sdk run bundle, and bundle-upgrade",
		"operator-sdk cleanup ":                             "OLM-3 operator-sdk run bundle, and bundle-upgrade",
		"make deploy ":                                      here,
		"kubectl get pods --namespace":                      here,
		"resources: [../../config/default]":                 here,
		"kubectl kustomize config/default/monitoring | sed": runbooks,
		"make scorecard-image ":                             "TestScorecard",
		"make bundle ":                                      "TestScorecard",
		"make scorecard":                                    "TestScorecard",
		"make run":                                          "make run",
		"make olm-up":                                       "make olm-up",
		"make olm-down":                                     "make olm-down",
	},
}

// runbooks is the test that reads the links that a command of docs/install.md replaces.
const runbooks = "TestW23RunbookLinksBeginAsThePageSays"

// untried is the page's sentence about commands that no test runs.
const untried = "No cluster with OLM v1 was available to install it."

// runner returns the test or make target that runs a command, and the prefix that matched.
func runner(page, command string) (by, beginning string) {
	for prefix, name := range runBy[page] {
		if strings.HasPrefix(command, prefix) && len(prefix) > len(beginning) {
			by, beginning = name, prefix
		}
	}
	return by, beginning
}

func TestW24EveryCommandOfThePagesIsRun(t *testing.T) {
	g := NewWithT(t)
	tests := source(t)
	makefile := read(t, "Makefile")
	for _, page := range pages {
		text := read(t, page)
		used := map[string]bool{}
		for _, block := range Blocks(text) {
			for _, command := range block {
				by, beginning := runner(page, command)
				used[beginning] = true
				switch target, isTarget := strings.CutPrefix(by, "make "); {
				case by == "":
					t.Errorf("%s: no test runs %q: list the test in runBy, or have %s run it", page, command, here)
				case by == untried:
					g.Expect(text).To(ContainSubstring(untried), page)
				case isTarget:
					g.Expect(makefile).To(ContainSubstring("\n"+target+":"), command)
				default:
					g.Expect(tests).To(Or(ContainSubstring("func "+by+"("), ContainSubstring(`"`+by+`"`)), command)
				}
			}
		}
		for beginning := range runBy[page] {
			g.Expect(used).To(HaveKey(beginning), "no command of %s begins with it", page)
		}
	}
}

func TestBlocksAreCommands(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Blocks("text\n\n```yaml\n    fenced: true\n```\n\n    $ shown\n    output\n\ntext\n\n    a   # why\n    # b\n\n    c |\n      d\n\ntext\n\n    e <<EOF\n    f\n    EOF\n    g\n")).To(Equal(
		[][]string{{"a", "c |\n  d"}, {"e <<EOF\nf\nEOF", "g"}}))
}

// source returns the text of all tests.
func source(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"test/*/*_test.go", "controllers/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		NewWithT(t).Expect(err).To(Succeed())
		for _, file := range files {
			if !strings.HasSuffix(file, "documents/commands_test.go") {
				text, err := os.ReadFile(file)
				NewWithT(t).Expect(err).To(Succeed())
				all.Write(text)
			}
		}
	}
	return all.String()
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	NewWithT(t).Expect(err).To(Succeed())
	return string(text)
}

// imageLine matches an image of a container in a sample.
var imageLine = regexp.MustCompile(`(?m)^\s+(?:- )?image: (\S+)$`)

// publicImage matches an image with a pinned tag in a public registry.
var publicImage = regexp.MustCompile(`^(docker\.io|registry\.k8s\.io)/[a-z0-9/-]+:\d+\.\d+[.0-9-]*$|^docker\.io/library/postgres:\d+$`)

func TestW24EverySampleSaysWhatItNeeds(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob(root + "/config/samples/*/*.yaml")
	g.Expect(err).To(Succeed())
	g.Expect(len(files)).To(BeNumerically(">=", 24))
	var forMakeRun []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		g.Expect(err).To(Succeed())
		text := string(raw)
		head, _, _ := strings.Cut(text, "\napiVersion:")
		_, needs, said := strings.Cut(head, "# Needs: ")
		g.Expect(said).To(BeTrueBecause("%s: the comment at its top must end with `# Needs: …`, or `# Needs: nothing else.`", file))
		if strings.HasPrefix(needs, "make run") {
			forMakeRun = append(forMakeRun, strings.TrimPrefix(file, root+"/"))
			continue
		}
		images := imageLine.FindAllStringSubmatch(text, -1)
		g.Expect(images).NotTo(BeEmpty(), file)
		for _, image := range images {
			g.Expect(image[1]).To(MatchRegexp(publicImage.String()), "%s: use a public image with a pinned tag, or state that it needs make run", file)
		}
		claims := strings.Contains(text, "volumeClaimTemplates:") || strings.Contains(text, "kind: PersistentVolumeClaim")
		g.Expect(strings.Contains(needs, "a default StorageClass")).To(Equal(claims), file)
		secret := strings.Contains(text, "secretKeyRef:")
		g.Expect(strings.Contains(needs, "Secret")).To(Equal(secret), file)
		g.Expect(strings.Contains(needs, "Nodes in the zones")).To(Equal(strings.Contains(text, "\n  zones:")), file)
	}
	// No page may apply these samples. They are for make run only.
	for _, page := range readersPages(t) {
		for _, command := range slices.Concat(Blocks(read(t, page))...) {
			for _, file := range forMakeRun {
				g.Expect(command).NotTo(MatchRegexp("kubectl .*"+regexp.QuoteMeta(file)), page)
			}
		}
	}
}

// readersPages returns the pages for users of the operator.
func readersPages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/kinds/*.md", "docs/applications/*.md", "docs/runbooks/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		NewWithT(t).Expect(err).To(Succeed())
		for _, file := range files {
			all = append(all, strings.TrimPrefix(file, root+"/"))
		}
	}
	return all
}
