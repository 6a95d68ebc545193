package children

import (
	"fmt"
	"strings"
)

// ShortList is a list of names that prints the first three and the number of the others.
type ShortList struct {
	first []string
	more  int
}

// Add adds a name.
func (s *ShortList) Add(name string) {
	if len(s.first) < 3 {
		s.first = append(s.first, name)
	} else {
		s.more++
	}
}

func (s *ShortList) String() string {
	text := strings.Join(s.first, ", ")
	if s.more > 0 {
		text += fmt.Sprintf(" and %d more", s.more)
	}
	return text
}
