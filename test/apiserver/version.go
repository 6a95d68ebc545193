package apiserver

import (
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// AtLeast reports whether the API server is of a version of Kubernetes, or later.
func (s Server) AtLeast(wanted string) bool {
	return s.version.AtLeast(version.MustParseGeneric(wanted))
}

// versionOf is that of an API server.
func versionOf(config *rest.Config) *version.Version {
	GinkgoHelper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	info, err := client.ServerVersion()
	Expect(err).NotTo(HaveOccurred())
	has, err := version.ParseGeneric(info.GitVersion)
	Expect(err).NotTo(HaveOccurred())
	return has
}

// webhookSays is how the API server begins what a webhook says. Of a value that a rule of a
// schema refuses, one before 1.36 says its type or nothing (noValue), and null in quotes.
var (
	webhookSays = regexp.MustCompile(`^admission webhook "[^"]*" denied the request: `)
	noValue     = regexp.MustCompile(`Invalid value: "(object|array|string|integer|)": `)
	anyValue    = regexp.MustCompile(`Invalid value: ("[^"]*"|-?[0-9]+): `)
)

// Said is what a user reads of an error, without the name of the webhook.
func Said(err error) string {
	if err == nil {
		return ""
	}
	text := webhookSays.ReplaceAllString(err.Error(), "")
	text = strings.ReplaceAll(text, `Invalid value: "null": `, "Invalid value: null: ")
	return noValue.ReplaceAllString(text, "Invalid value: ")
}

// Words are what Said gives of a refusal by a rule of a schema, where an API server of 1.36
// says those words: without the values, before 1.36.
func (s Server) Words(words string) string {
	if s.AtLeast("1.36") {
		return noValue.ReplaceAllString(words, "Invalid value: ")
	}
	return anyValue.ReplaceAllString(words, "Invalid value: ")
}

// Says matches those words, whoever refuses: the API server or a webhook.
func (s Server) Says(words string) types.GomegaMatcher {
	return Or(BeIdenticalTo(words), BeIdenticalTo(s.Words(words)))
}

// Mentions matches what contains those words, whoever refuses.
func (s Server) Mentions(words string) types.GomegaMatcher {
	return Or(ContainSubstring(words), ContainSubstring(s.Words(words)))
}
