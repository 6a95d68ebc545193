package lease

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReadPod(t *testing.T) {
	f := Folders{Fencing: t.TempDir()}
	write(t, f.Fencing, namespaceFile, "shop")
	write(t, f.Fencing, podNameFile, "orders-a\n")
	if _, err := f.readPod(); err == nil || !strings.Contains(err.Error(), podUIDFile) {
		t.Errorf("without a UID: %v", err)
	}
	write(t, f.Fencing, podUIDFile, "")
	if _, err := f.readPod(); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("with an empty UID: %v", err)
	}
	write(t, f.Fencing, podUIDFile, "1-2")
	p, err := f.readPod()
	if err != nil || p.namespace != "shop" || p.identity() != "orders-a_1-2" {
		t.Errorf("the pod is %+v (%v)", p, err)
	}
}
