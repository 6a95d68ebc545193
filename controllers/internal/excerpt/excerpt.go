// Package excerpt cuts a text to the room that there is for it: what the API server or
// another client said may be of any length.
package excerpt

import "strings"

// most is how many bytes a message has at most. The note of an event may have 1 kB.
const most = 1000

// Message fits a text into a condition or an event.
func Message(text string) string { return Of(text, most) }

// Of is a text without what is beyond so many bytes, and without half a character at its
// end.
func Of(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }
