// Package excerpt truncates texts. Messages of the API server and of other clients can have any length.
package excerpt

import "strings"

// most is the max number of bytes of a message. The note of an event can have 1 kB.
const most = 1000

// Message truncates a text for a condition or an event.
func Message(text string) string { return Of(text, most) }

// Of truncates a text to most bytes. It removes an incomplete character at the end.
func Of(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }
