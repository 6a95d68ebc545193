// Package simtest tests simulations of a cluster: their stories, random orders, and invariants.
package simtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
)

// manyOrders is the number of random orders with which every write fails in every way.
const manyOrders = 100

var orders = flag.String("orders", "",
	fmt.Sprintf("random orders of each story: COUNT, or FIRST+COUNT to repeat some; with a count of %d or more, every write fails in every way", manyOrders))

// Orders returns the seed of the first random order of each story, and the number of orders. The
// default number applies without flag -orders.
func Orders(byDefault int) (first, count int) {
	first, count, err := parseOrders(*orders, byDefault)
	if err != nil {
		panic(err)
	}
	return first, count
}

func parseOrders(text string, byDefault int) (first, count int, err error) {
	if text == "" {
		return 0, byDefault, nil
	}
	if strings.Contains(text, "+") {
		_, err = fmt.Sscanf(text, "%d+%d", &first, &count)
	} else {
		_, err = fmt.Sscanf(text, "%d", &count)
	}
	if err != nil {
		err = fmt.Errorf("flag -orders: %q is neither COUNT nor FIRST+COUNT", text)
	}
	return first, count, err
}

// EveryWrite reports whether every write of a story fails in every way, instead of some of them.
func EveryWrite() bool {
	_, count := Orders(0)
	return count >= manyOrders
}

// stories is the folder of the golden files, and extension the end of their names.
const (
	stories   = "testdata/stories"
	extension = ".story"
)

var notInName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// storyFile returns the path of the golden file of a story.
func storyFile(name string) string {
	return filepath.Join(stories, strings.Trim(notInName.ReplaceAllString(name, "-"), "-")+extension)
}

// CheckStory compares a story with its golden file in testdata/stories. The format is the same for
// all kinds: an action of a user or of the environment begins with #, a write of the operator with
// two spaces, a write that fails with !, an event in the cluster with four spaces, and the reported
// state with =.
func CheckStory(t *testing.T, name string, lines []string) {
	t.Helper()
	for _, line := range lines {
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "=") && !strings.HasPrefix(line, "! ") {
			t.Errorf("line %q of the story begins with neither #, =, ! nor spaces", line)
		}
	}
	golden.Check(t, storyFile(name), strings.TrimRight(strings.Join(lines, "\n"), "\n")+"\n")
}

// CheckNoOtherStories fails the test if testdata/stories has a file that belongs to no story.
func CheckNoOtherStories(t *testing.T, names []string) {
	t.Helper()
	files, err := os.ReadDir(stories)
	if err != nil {
		t.Fatal(err)
	}
	var expected []string
	for _, name := range names {
		expected = append(expected, filepath.Base(storyFile(name)))
	}
	for _, file := range files {
		if !slices.Contains(expected, file.Name()) {
			t.Errorf("%s belongs to no story", filepath.Join(stories, file.Name()))
		}
	}
}
