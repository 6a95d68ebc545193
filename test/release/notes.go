package release

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/mod/semver"
)

// Notes returns the section of a changelog for a version. A version with a suffix is a prerelease, and
// its section is Unreleased.
func Notes(changelog, version string) ([]byte, error) {
	text, err := os.ReadFile(changelog)
	if err != nil {
		return nil, err
	}
	section := version
	if semver.Prerelease("v"+version) != "" {
		section = "Unreleased"
	}
	notes, found := cut(string(text), section)
	if !found {
		return nil, fmt.Errorf("%s has no section for [%s]: give the section under Unreleased the heading \"## [%s] - YYYY-MM-DD\", and begin an empty Unreleased above it",
			changelog, section, section)
	}
	if notes == "" {
		return nil, fmt.Errorf("%s has an empty section [%s]: describe the changes for users", changelog, section)
	}
	return []byte(notes + "\n"), nil
}

// cut returns the text of a section, up to the next heading.
func cut(text, section string) (notes string, found bool) {
	var lines bytes.Buffer
	for line := range strings.SplitSeq(text, "\n") {
		heading, isHeading := strings.CutPrefix(line, "## ")
		if isHeading && found {
			break
		}
		isLink := strings.HasPrefix(line, "[") && strings.Contains(line, "]: ")
		switch {
		case isHeading:
			found = strings.HasPrefix(heading, "["+section+"]")
		case found && !isLink:
			lines.WriteString(line + "\n")
		}
	}
	return strings.TrimSpace(lines.String()), found
}
