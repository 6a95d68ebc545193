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

// AtLeast reports whether the API server has this version of Kubernetes or a later one.
func (s Server) AtLeast(wanted string) bool {
	return s.version.AtLeast(version.MustParseGeneric(wanted))
}

// versionOf returns the version of an API server.
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

// webhookSays matches the prefix that the API server adds to a webhook's message. For a value that a
// schema rule rejects, API servers before 1.36 print its type or nothing (noValue), and quote null.
var (
	webhookSays = regexp.MustCompile(`^admission webhook "[^"]*" denied the request: `)
	noValue     = regexp.MustCompile(`Invalid value: "(object|array|string|integer|)": `)
	anyValue    = regexp.MustCompile(`Invalid value: ("[^"]*"|-?[0-9]+): `)
)

// Said returns the message of an error as a user sees it, without the name of the webhook.
func Said(err error) string {
	if err == nil {
		return ""
	}
	text := webhookSays.ReplaceAllString(err.Error(), "")
	text = strings.ReplaceAll(text, `Invalid value: "null": `, "Invalid value: null: ")
	return noValue.ReplaceAllString(text, "Invalid value: ")
}

// Words returns the result of Said for a schema rule's rejection whose message on 1.36 is words. Before
// 1.36 it has no values.
func (s Server) Words(words string) string {
	if s.AtLeast("1.36") {
		return noValue.ReplaceAllString(words, "Invalid value: ")
	}
	return anyValue.ReplaceAllString(words, "Invalid value: ")
}

// Says matches these words in a rejection by the API server or by a webhook.
func (s Server) Says(words string) types.GomegaMatcher {
	return Or(BeIdenticalTo(words), BeIdenticalTo(s.Words(words)))
}

// Mentions matches a rejection by the API server or a webhook that contains these words.
func (s Server) Mentions(words string) types.GomegaMatcher {
	return Or(ContainSubstring(words), ContainSubstring(s.Words(words)))
}
