package driver

import "os/exec"

// FindProgram returns the path of a program in the image. The error is NotConfigured: all members have the same
// image.
func FindProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", Errorf(NotConfigured, "the image contains no %s in PATH", name)
	}
	return path, nil
}
