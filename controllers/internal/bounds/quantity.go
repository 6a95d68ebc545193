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

// MaxQuantity is the max number of characters of a quantity. An exponent has at most two digits:
// 1e99 is more than any real amount. Kubernetes accepts any exponent, and computes a number with that
// many digits. So a quantity of 30 characters could use all memory.
const MaxQuantity = 64

// metadata is the key of object metadata, which contains no quantities. Users choose the keys of
// annotations.
const metadata = "metadata"

// deepest is the max nesting depth of objects and lists. All JSON decoders of Kubernetes have this
// limit.
const deepest = 10000

var (
	// suspect matches any text that contains too large a quantity, including one with escaped
	// characters. It rarely matches other texts.
	suspect     = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{3}|[0-9.]{60}|\\u00(2[bBdDeE]|3[0-9]|[46]5)`)
	longSuffix  = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{3}`)
	quantities  = []string{"divisor", "perContainer", "perPod", "quantity", "sizeLimit"}
	quantityMap = []string{"allocatedResources", "capacity", "limits", "overhead", "requests"}
)

// Quantities returns an error if the JSON of a Kubernetes object contains a quantity that is too large
// to process. The JSON may also be a request that contains such an object. Quantities must be called
// before decoding, because decoding is the expensive step. It ignores labels and similar values that
// only look like large quantities.
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
			return fmt.Errorf("is not JSON: %w", err)
		case len(at) > deepest:
			return fmt.Errorf("has more than %d levels of nested lists and objects", deepest)
		default:
			if text := at.read(token); len(text) > MaxQuantity || longSuffix.MatchString(text) {
				return fmt.Errorf("has a quantity that is too large: it may have at most %d characters, and an exponent of at most two digits", MaxQuantity)
			}
		}
	}
}

// place is the stack of objects and lists around the current token, outermost first.
type place []level

type level struct {
	object bool
	key    string // is the key of the next or current value
	named  bool   // is true once the key was read
	// inMetadata is true for all levels below a key metadata.
	inMetadata bool
}

// read processes one token. If the token is a quantity, read returns its text, else "".
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
