package podexec

import (
	"bytes"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzKept writes the output of a program in two pieces. The kept text must be the beginning of the
// output, must not exceed the limit, and cut must be true if there was more.
func FuzzKept(f *testing.F) {
	f.Add([]byte("  42\n"), uint8(2), uint8(64))
	f.Add([]byte("12345678901234567890123\n"), uint8(20), uint8(20))
	f.Add([]byte(" \n\t "), uint8(1), uint8(0))
	f.Add([]byte{0xff, 0, '\r'}, uint8(9), uint8(1))
	f.Fuzz(func(t *testing.T, printed []byte, at, most uint8) {
		k := kept{most: int(most)}
		cut := min(int(at), len(printed))
		for _, piece := range [][]byte{printed[:cut], printed[cut:]} {
			if n, err := k.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("it writes %d of %d bytes: %v", n, len(piece), err)
			}
		}
		all := bytes.TrimLeft(printed, blanks)
		want := all[:min(len(all), int(most))]
		if !bytes.Equal(k.text, want) {
			t.Errorf("output %q, want %q", k.text, want)
		}
		if more := len(bytes.TrimLeft(all[len(want):], blanks)) > 0; k.cut != more {
			t.Errorf("limit exceeded: %v, reported %v", more, k.cut)
		}
	})
}

// FuzzConclude parses the status with which a node ends a command. The outcome may be succeeded only if
// the status reports it, and failed only with an exit code.
func FuzzConclude(f *testing.F) {
	f.Add([]byte(`{"status":"Success"}`))
	f.Add([]byte(`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"8"}]}}`))
	f.Add([]byte(`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"0"}]}}`))
	f.Add([]byte(`{"status":"Failure","message":"unable to start container process: exec: no such file or directory"}`))
	f.Add([]byte(`{"status":"Failure","reason":"NonZeroExitCode","details":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := Result{Command: Command{Keep: 64}, Outcome: Unknown}
		err := r.conclude(text)
		var status metav1.Status
		read := json.Unmarshal(text, &status) == nil
		switch {
		case r.Outcome == Succeeded && (!read || status.Status != metav1.StatusSuccess):
			t.Error("success without an exit status")
		case r.Outcome == Failed && (r.Code == 0 || status.Status == metav1.StatusSuccess):
			t.Errorf("failure with exit code %d", r.Code)
		case (r.Outcome == Unknown) != (err != nil):
			t.Errorf("outcome %v, and %v", r.Outcome, err)
		case len(r.Stderr) > 64:
			t.Errorf("%d bytes are kept", len(r.Stderr))
		}
	})
}
