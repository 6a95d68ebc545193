// Package documents parses the pages for users, so that tests can compare them with the code.
package documents

import (
	"regexp"
	"strings"
)

var (
	comment = regexp.MustCompile(`\s+#.*$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
)

// Blocks returns the commands of the code blocks of a page, without comments. A here-document
// or a pipeline that is continued is one command. Indented blocks in YAML are one command too. Fenced
// blocks and transcripts, which begin with a prompt, have none.
func Blocks(text string) (found [][]string) {
	var block []string
	var end string // the line that ends a here-document
	flush := func() {
		if len(block) > 0 && !strings.HasPrefix(block[0], "$ ") {
			found = append(found, block)
		}
		block, end = nil, ""
	}
	for line := range strings.SplitSeq(fenced.ReplaceAllString(text, "```"), "\n") {
		line, indented := strings.CutPrefix(line, "    ")
		switch {
		case !indented && line != "":
			flush()
			continue
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		}
		last := len(block) - 1
		switch {
		case end != "":
			block[last] += "\n" + line
			if line == end {
				end = ""
			}
		case last >= 0 && (strings.HasPrefix(line, " ") || strings.HasSuffix(block[last], "|") || strings.HasPrefix(block[0], "resources:")):
			block[last] += "\n" + line
		default:
			block = append(block, comment.ReplaceAllString(line, ""))
			if _, mark, here := strings.Cut(line, "<<"); here {
				end = mark
			}
		}
	}
	flush()
	return found
}
