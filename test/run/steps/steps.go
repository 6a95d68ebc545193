// Package steps runs steps one after another, and prints an estimate of the remaining time before each.
// The estimate uses the times of the last run, which are stored in the user's cache folder.
package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Step is a step of Run.
type Step struct {
	Title string
	// Key is the key of its stored time. Default: Title. A step has another key in an environment in
	// which its duration differs.
	Key string
	// Usual is the estimate on a machine with two CPUs without a stored time.
	Usual time.Duration
	Do    func(context.Context) error
}

// File returns the path of the stored times, in the user's cache folder.
func File() string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return "" // times are not stored
	}
	return filepath.Join(folder, "stateful-operator", "times.json")
}

// Run runs the steps until one fails.
func Run(ctx context.Context, out io.Writer, file string, all []Step) error {
	times := map[string]time.Duration{}
	if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &times) != nil {
		times = map[string]time.Duration{} // from another version
	}
	for i, step := range all {
		fmt.Fprintf(out, "\n==> %s (%s)\n", step.Title, left(times, all[i:]))
		began := time.Now()
		if err := step.Do(ctx); err != nil {
			return err
		}
		times[step.key()] = time.Since(began)
		if err := keep(file, times); err != nil {
			return err
		}
	}
	return nil
}

func (s Step) key() string {
	if s.Key != "" {
		return s.Key
	}
	return s.Title
}

// left returns the estimated time of the steps as text, rounded to its precision.
func left(times map[string]time.Duration, steps []Step) string {
	var sum time.Duration
	for _, step := range steps {
		took, known := times[step.key()]
		if !known {
			took = step.Usual
		}
		sum += took
	}
	if sum >= 90*time.Second {
		return fmt.Sprintf("about %d min left", int(sum.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("about %d s left", max(int(sum.Round(5*time.Second).Seconds()), 5))
}

func keep(file string, times map[string]time.Duration) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(times, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
