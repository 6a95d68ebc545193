package documents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kinds lists the page, the folder of types and the CRD of each kind.
var kinds = []struct{ page, types, crd string }{
	{"statefulcluster", "apis/enge/v1alpha1", "enge.me_statefulclusters"},
	{"replicatedstatefulset", "apis/clusterlabs/v1alpha1", "clusterlabs.org_replicatedstatefulsets"},
	{"extendedstatefulset", "apis/fissile/v1alpha1", "fissile.cloudfoundry.org_extendedstatefulsets"},
	{"statefulsingleton", "apis/statefulsingleton/v1", "apps.openshift.statefulsingleton.com_statefulsingletons"},
}

// columns returns the printer columns of a kind in capitals.
func columns(t *testing.T, name string) (all, wide []string) {
	t.Helper()
	g := NewWithT(t)
	var crd apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.Unmarshal([]byte(read(t, "config/crd/bases/"+name+".yaml")), &crd)).To(Succeed())
	for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		all = append(all, strings.ToUpper(column.Name))
		if column.Priority > 0 {
			wide = append(wide, strings.ToUpper(column.Name))
		}
	}
	return all, wide
}

var (
	columnRow = regexp.MustCompile("^\\| `?([A-Za-z ]+?)`?(, with `-o wide`)? \\|")
	gap       = regexp.MustCompile(` {2,}`)
)

func TestW23ColumnsOfPagesAreThoseOfTheCRDs(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.page, func(t *testing.T) {
			g := NewWithT(t)
			all, wide := columns(t, kind.crd)
			text := read(t, "docs/kinds/"+kind.page+".md")
			_, table, found := strings.Cut(text, "\n| column | what |\n|---|---|\n")
			g.Expect(found).To(BeTrue(), "the page has a table of columns")
			var rows, wideRows []string
			for line := range strings.Lines(table) {
				row := columnRow.FindStringSubmatch(line)
				if row == nil {
					break
				}
				rows = append(rows, strings.ToUpper(row[1]))
				if row[2] != "" {
					wideRows = append(wideRows, strings.ToUpper(row[1]))
				}
			}
			g.Expect(rows).To(Equal(without(all, "AGE")))
			g.Expect(wideRows).To(Equal(wide))
			// Examples may lack newer columns, and have columns of --label-columns after AGE.
			for line := range strings.Lines(text) {
				header, isHeader := strings.CutPrefix(strings.TrimSpace(line), "NAME ")
				if !isHeader || !slices.ContainsFunc(all, func(c string) bool {
					return c != "READY" && c != "AGE" && c != "STATUS" && c != "IMAGE" && c != "NODE" && c != "AVAILABLE" && c != "REVISION" && strings.Contains(header, " "+c+" ")
				}) {
					continue
				}
				header, _, _ = strings.Cut(header, "AGE")
				rest := all
				for _, column := range gap.Split(strings.TrimSpace(header), -1) {
					at := slices.Index(rest, column)
					g.Expect(at).To(BeNumerically(">=", 0), "%s: column %s of %q, in the order of the CRD", kind.page, column, line)
					rest = rest[at+1:]
				}
			}
		})
	}
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

// named matches the name of a condition or reason in a comment.
var named = regexp.MustCompile(`\b([Cc]ondition|[Rr]eason)s? ([A-Z][a-z]+(?:[A-Z][A-Za-z]*)?)\b`)

func TestW23TypeCommentsNameConditionsThatExist(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.page, func(t *testing.T) {
			g := NewWithT(t)
			conditions, reasons, comments, of := typesOf(t, kind.types)
			g.Expect(len(conditions)).To(BeNumerically(">=", 6))
			for _, condition := range conditions {
				g.Expect(of).To(MatchRegexp(`\b`+condition+`\b`), "the comment of status.conditions lists each condition")
			}
			for _, comment := range comments {
				for _, name := range named.FindAllStringSubmatch(strings.ReplaceAll(comment, "\n", " "), -1) {
					known := conditions
					if strings.EqualFold(name[1], "reason") {
						known = reasons
					}
					g.Expect(known).To(ContainElement(name[2]), comment)
				}
			}
		})
	}
}

// typesOf reads a folder of types. It returns the constants for conditions and reasons, the comments of
// fields, and the comment of the status' conditions.
func typesOf(t *testing.T, folder string) (conditions, reasons, comments []string, of string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	NewWithT(t).Expect(err).To(Succeed())
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		NewWithT(t).Expect(err).To(Succeed())
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i >= len(n.Values) {
						continue
					}
					literal, isText := n.Values[i].(*ast.BasicLit)
					if !isText {
						continue
					}
					value, err := strconv.Unquote(literal.Value)
					switch {
					case err != nil:
					case strings.HasPrefix(name.Name, "Condition"):
						conditions = append(conditions, value)
					case strings.HasPrefix(name.Name, "Reason"):
						reasons = append(reasons, value)
					}
				}
			case *ast.Field:
				comments = append(comments, n.Doc.Text())
				if len(n.Names) == 1 && n.Names[0].Name == "Conditions" {
					of = n.Doc.Text()
				}
			}
			return true
		})
	}
	return conditions, reasons, comments, of
}
