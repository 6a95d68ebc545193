package bounds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
)

// LongestQuantity is how many characters a quantity may have. An exponent has at most
// two digits: 1e99 is more than there is of anything. Kubernetes works with one of
// whatever size, and makes a number with as many digits as the exponent says: 30
// characters would take all memory.
const LongestQuantity = 64

// metadata is the key of what holds no quantity. A user names the annotations in it.
const metadata = "metadata"

// deepest is how many objects and lists may be within each other, as for all who read
// JSON in Kubernetes.
const deepest = 10000

var (
	// suspect is in every text with a quantity that is too large, and in few others: also in
	// one that escapes a character of it.
	suspect     = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{3}|[0-9.]{60}|\\u00(2[bBdDeE]|3[0-9]|[46]5)`)
	longSuffix  = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{3}`)
	quantities  = []string{"divisor", "perContainer", "perPod", "quantity", "sizeLimit"}
	quantityMap = []string{"allocatedResources", "capacity", "limits", "overhead", "requests"}
)

// Quantities refuses JSON of a Kubernetes object, or of a request that holds one, with a
// quantity that is too large to work with. It is asked before anything is decoded:
// decoding is what takes long. Labels and the like may look the same, and pass.
func Quantities(body []byte) error {
	if !suspect.Match(body) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var at place
	for {
		switch token, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("is no JSON: %w", err)
		case len(at) > deepest:
			return fmt.Errorf("has more than %d lists and objects within each other", deepest)
		default:
			if text := at.read(token); len(text) > LongestQuantity || longSuffix.MatchString(text) {
				return fmt.Errorf("has a quantity that is too large: it may have at most %d characters, and an exponent at most two digits", LongestQuantity)
			}
		}
	}
}

// place is the objects and lists that a reader is in, the outermost first.
type place []level

type level struct {
	object bool
	key    string // of the value that comes next or is being read
	named  bool   // whether that key was read
	// inMetadata is true of what is below a key metadata.
	inMetadata bool
}

// read goes on by a token. It returns the text of a quantity; "" for all else.
func (p *place) read(token json.Token) string {
	switch token {
	case json.Delim('{'), json.Delim('['):
		*p = append(*p, level{object: token == json.Delim('{'), inMetadata: p.entersMetadata()})
		return ""
	case json.Delim('}'), json.Delim(']'):
		*p = (*p)[:len(*p)-1]
		p.next()
		return ""
	}
	if n := len(*p); n > 0 && (*p)[n-1].object && !(*p)[n-1].named {
		(*p)[n-1].key, _ = token.(string)
		(*p)[n-1].named = true
		return ""
	}
	text := ""
	if p.isQuantity() {
		text = fmt.Sprint(token)
	}
	p.next()
	return text
}

// entersMetadata reports whether the object or list that begins is below a key metadata.
func (p *place) entersMetadata() bool {
	n := len(*p)
	return n > 0 && ((*p)[n-1].inMetadata || (*p)[n-1].key == metadata)
}

func (p *place) next() {
	if n := len(*p); n > 0 {
		(*p)[n-1].named = false
	}
}

func (p *place) isQuantity() bool {
	n := len(*p)
	if n > 0 && (*p)[n-1].inMetadata {
		return false
	}
	if n > 0 && slices.Contains(quantities, (*p)[n-1].key) {
		return true
	}
	return n > 1 && (*p)[n-1].object && slices.Contains(quantityMap, (*p)[n-2].key)
}
