package release

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// small returns a release with all parts, with programs that are built in a second.
func small(t *testing.T) *Release {
	t.Helper()
	program := Program{"./gate", "gate"}
	return &Release{
		Unsigned: true,
		Version:  "1.2.3", Registry: "registry.example.com/us", Source: "https://example.com/us/operator", Commit: "0123abc",
		Time:          time.Unix(1700000000, 0),
		Architectures: []string{runtime.GOARCH},
		Images:        []Image{{Operator.Name, []Program{program}}, {Gate.Name, []Program{program}}},
		Manifests:     map[string]string{"install.yaml": "testdata/config"},
		Plugin:        "./gate", Desks: []cluster.Target{{System: "linux", Architecture: runtime.GOARCH}},
		Bundle:    newBundle,
		Catalog:   newCatalog,
		Changelog: "testdata/CHANGELOG.md", License: "../../LICENSE",
		Out: filepath.Join(t.TempDir(), "dist"), Log: io.Discard,
	}
}

// runs makes each run write a different time into its bundle, as operator-sdk does.
var runs int

func newBundle(_ context.Context, operator, folder string) error {
	runs++
	csv := fmt.Sprintf("metadata:\n  annotations:\n    createdAt: %q\n    containerImage: %s\n", time.Unix(int64(runs), 0), operator)
	return writeAll(folder, map[string]string{
		"manifests/stateful-operator.clusterserviceversion.yaml": csv,
		"metadata/annotations.yaml":                              "annotations: {package: stateful-operator}\n",
	})
}

func newCatalog(_ context.Context, _, image, folder string) error {
	return writeAll(folder, map[string]string{"catalog/stateful-operator/catalog.yaml": "image: " + image + "\n"})
}

func writeAll(folder string, files map[string]string) error {
	for file, text := range files {
		file = filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// contents returns the files of a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	NewWithT(t).Expect(err).To(Succeed())
	all := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		NewWithT(t).Expect(err).To(Succeed())
		all[entry.Name()] = string(content)
	}
	return all
}

// TestTwoReleasesOfACommitAreTheSame compares two runs that differ in folder, day, umask, and Go's
// environment variables.
func TestTwoReleasesOfACommitAreTheSame(t *testing.T) {
	g := NewWithT(t)
	one := small(t)
	one.Key = newKey(t)
	g.Expect(one.Write(t.Context())).To(Succeed())
	t.Setenv("GOFLAGS", "-trimpath=false -tags=other")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("TZ", "Asia/Kathmandu")
	was := syscall.Umask(0o077)
	defer syscall.Umask(was)
	two := small(t)
	two.Key = one.Key
	g.Expect(two.Write(t.Context())).To(Succeed())
	first, second := contents(t, one.Out), contents(t, two.Out)
	for file := range first {
		g.Expect(second[file] == first[file]).To(BeTrueBecause("%s differs", file))
	}
	g.Expect(len(second)).To(Equal(len(first)))
	g.Expect(first).To(And(HaveLen(12), HaveKey("SHA256SUMS.sig"), HaveKey("gate-1.2.3-linux-"+runtime.GOARCH+".tar.gz")))
}

func TestWhatIsInARelease(t *testing.T) {
	g, r := NewWithT(t), small(t)
	g.Expect(r.Write(t.Context())).To(Succeed())
	files := contents(t, r.Out)

	// The checksums are complete and correct.
	sums := strings.Split(strings.TrimSpace(files[sumsFile]), "\n")
	g.Expect(sums).To(HaveLen(len(files) - 1))
	for _, line := range sums {
		sum, file, _ := strings.Cut(line, "  ")
		is := sha256.Sum256([]byte(files[file]))
		g.Expect(sum).To(Equal(hex.EncodeToString(is[:])), file)
	}

	// The manifest references the image in the archive.
	folder := t.TempDir()
	g.Expect(unpack(filepath.Join(r.Out, "stateful-operator-1.2.3-image.tar"), folder)).To(Succeed())
	var index v1.IndexManifest
	text, err := os.ReadFile(filepath.Join(folder, "index.json"))
	g.Expect(err).To(Succeed())
	g.Expect(json.Unmarshal(text, &index)).To(Succeed())
	digest := index.Manifests[0].Digest.String()
	g.Expect(files["install.yaml"]).To(ContainSubstring("image: registry.example.com/us/stateful-operator:1.2.3@" + digest + "\n"))

	// The provenance includes each file, except the checksums and itself, and the images.
	var said statement
	provenance := "stateful-operator-1.2.3.provenance.json"
	g.Expect(json.Unmarshal([]byte(files[provenance]), &said)).To(Succeed())
	subjects := map[string]string{}
	for _, subject := range said.Subject {
		subjects[subject.Name] = subject.Digest["sha256"]
	}
	g.Expect(subjects).To(HaveKeyWithValue("registry.example.com/us/stateful-operator:1.2.3", strings.TrimPrefix(digest, "sha256:")))
	g.Expect(subjects).To(HaveLen(len(files) - 2 + 3))
	g.Expect(said.Predicate.BuildDefinition.ResolvedDependencies[0].Digest).To(Equal(map[string]string{"gitCommit": "0123abc"}))

	var list cyclonedx.BOM
	decoder := cyclonedx.NewBOMDecoder(strings.NewReader(files["stateful-operator-1.2.3.cdx.json"]), cyclonedx.BOMFileFormatJSON)
	g.Expect(decoder.Decode(&list)).To(Succeed())
	g.Expect(*list.Components).To(ContainElement(HaveField("PackageURL", "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go"))))
	g.Expect(files[notesFile]).To(Equal("### Fixed\n\n- It works.\n"))
}

func TestWhatIsPushedIsWhatWasReleased(t *testing.T) {
	g, r := NewWithT(t), small(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	r.Registry = strings.TrimPrefix(server.URL, "http://") + "/us"
	g.Expect(r.Write(t.Context())).To(Succeed())
	r.Unsigned = false
	_, err := r.Push(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("would not be signed")), "unsigned although that was not requested")
	r.Key = newKey(t)
	pushed, err := r.Push(t.Context())
	g.Expect(err).To(Succeed())
	g.Expect(pushed).To(HaveLen(6))
	checkSignature(g, r.Key, pushed[0], pushed[1])
	install := contents(t, r.Out)["install.yaml"]
	_, reference, _ := strings.Cut(install, "image: ")
	reference, _, _ = strings.Cut(reference, "\n")
	at, err := name.ParseReference(reference)
	g.Expect(err).To(Succeed())
	pulled, err := remote.Image(at, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	g.Expect(err).To(Succeed())
	config, err := pulled.ConfigFile()
	g.Expect(err).To(Succeed())
	g.Expect(config.Config.Entrypoint).To(Equal([]string{"/gate"}))
	g.Expect(config.Config.User).To(Equal("65532:65532"))
	g.Expect(config.Config.Labels).To(HaveKeyWithValue("org.opencontainers.image.revision", "0123abc"))
	files := mutate.Extract(pulled)
	defer files.Close()
	content, err := io.ReadAll(files)
	g.Expect(err).To(Succeed())
	g.Expect(len(content)).To(BeNumerically(">", 1<<20), "bytes of the program in it")
}

// checkSignature checks the signature of an image as cosign does: the layer contains the image's
// digest, and its annotation is the signature of the layer.
func checkSignature(g Gomega, key []byte, reference, signature string) {
	at, err := name.ParseReference(reference)
	g.Expect(err).To(Succeed())
	head, err := remote.Head(at)
	g.Expect(err).To(Succeed())
	g.Expect(signature).To(HaveSuffix("stateful-operator:" + strings.Replace(head.Digest.String(), ":", "-", 1) + ".sig"))
	beside, err := name.ParseReference(signature)
	g.Expect(err).To(Succeed())
	image, err := remote.Image(beside)
	g.Expect(err).To(Succeed())
	manifest, err := image.Manifest()
	g.Expect(err).To(Succeed())
	g.Expect(manifest.Layers).To(HaveLen(1))
	layers, err := image.Layers()
	g.Expect(err).To(Succeed())
	content, err := layers[0].Uncompressed()
	g.Expect(err).To(Succeed())
	defer content.Close()
	payload, err := io.ReadAll(content)
	g.Expect(err).To(Succeed())
	var claim signed
	g.Expect(json.Unmarshal(payload, &claim)).To(Succeed())
	g.Expect(claim.Critical.Image.DockerManifestDigest).To(Equal(head.Digest.String()))
	g.Expect(claim.Critical.Identity.DockerReference).To(Equal(at.Context().Name()))
	private, err := signerOf(key)
	g.Expect(err).To(Succeed())
	bytes, err := base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations[signatureAnnotation])
	g.Expect(err).To(Succeed())
	sum := sha256.Sum256(payload)
	g.Expect(ecdsa.VerifyASN1(&private.(*ecdsa.PrivateKey).PublicKey, sum[:], bytes)).To(BeTrue())
}

func TestWhatCannotBeReleased(t *testing.T) {
	for says, row := range map[string]struct {
		change func(*Release)
		want   string
	}{
		"no version":                      {func(r *Release) { r.Version = "" }, `version "" is not of the form`},
		"two numbers":                     {func(r *Release) { r.Version = "1.2" }, `version "1.2" is not`},
		"a v":                             {func(r *Release) { r.Version = "v1.2.3" }, `version "v1.2.3" is not`},
		"a plus, which tags do not allow": {func(r *Release) { r.Version = "1.2.3+x" }, `version "1.2.3+x" is not`},
		"no registry":                     {func(r *Release) { r.Registry = "" }, `registry "" is not`},
		"a commit with flags":             {func(r *Release) { r.Commit = "x -w" }, `commit "x -w" is not`},
		"no architecture":                 {func(r *Release) { r.Architectures = nil }, "architectures are required"},
		"a version without a section":     {func(r *Release) { r.Version = "1.3.0" }, "has no section for [1.3.0]"},
		"a version with an empty section": {func(r *Release) { r.Version = "1.2.2" }, "empty section [1.2.2]"},
		"no key":                          {func(r *Release) { r.Unsigned = false }, "would not be signed"},
		"no folder":                       {func(r *Release) { r.Out = "" }, "a folder for the output is required"},
		"a folder with other things":      {func(r *Release) { r.Out = "testdata" }, "testdata has files and is not a release"},
	} {
		t.Run(says, func(t *testing.T) {
			r := small(t)
			row.change(r)
			NewWithT(t).Expect(r.Write(t.Context())).To(MatchError(ContainSubstring(row.want)))
		})
	}
	NewWithT(t).Expect("testdata/CHANGELOG.md").To(BeAnExistingFile())
}

func TestATrialHasTheNotesOfWhatIsNotReleased(t *testing.T) {
	notes, err := Notes("testdata/CHANGELOG.md", "1.3.0-rc.1")
	NewWithT(t).Expect(err).To(Succeed())
	NewWithT(t).Expect(string(notes)).To(Equal("### Added\n\n- Not yet.\n"))
}

func TestTheProjectsChangelogCanBeCut(t *testing.T) {
	notes, err := Notes("../../CHANGELOG.md", "99.0.0-rc.1")
	NewWithT(t).Expect(err).To(Succeed())
	NewWithT(t).Expect(string(notes)).NotTo(ContainSubstring("## ["))
}

func TestOLMIsTakenToDigestsWithoutTags(t *testing.T) {
	NewWithT(t).Expect(byDigest("example.com:5000/us/bundle:1.2.3@sha256:abc")).To(Equal("example.com:5000/us/bundle@sha256:abc"))
}
