package membership

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
)

func TestNumbersOfCopies(t *testing.T) {
	for _, row := range []struct {
		name   string
		mark   Mark
		data   bool
		number uint64
		code   driver.Code
	}{
		{"empty", Mark{}, false, 0, driver.Succeeded},
		{"foreign data", Mark{}, true, 0, driver.NotInstalled},
		{"being created", Mark{State: Creating}, true, 0, driver.Succeeded},
		{"joining", Mark{State: Joining, Cluster: "c"}, true, 0, driver.Succeeded},
		{"being promoted", Mark{State: Promoting, Cluster: "c"}, true, 1, driver.Succeeded},
		{"member", Mark{State: Member, Cluster: "c"}, true, 1, driver.Succeeded},
		{"without its data", Mark{State: Member, Cluster: "c"}, false, 0, driver.Succeeded},
		{"left", Mark{State: Left, Cluster: "c"}, true, 0, driver.Succeeded},
	} {
		f := File{Folder: t.TempDir(), HasData: func() (bool, error) { return row.data, nil }}
		if row.mark.State != "" {
			if err := f.Write(row.mark); err != nil {
				t.Fatal(err)
			}
		}
		number, err := f.Sequence()
		if number != row.number || driver.CodeOf(err) != row.code {
			t.Errorf("%s: the number is %d (%v), want %d and code %d", row.name, number, err, row.number, row.code)
		}
	}
}

func TestUnreadableDataIsAnError(t *testing.T) {
	f := File{Folder: t.TempDir(), HasData: func() (bool, error) { return false, errors.New("unreadable") }}
	if _, err := f.Sequence(); err == nil {
		t.Error("there is no error without a mark")
	}
	if err := f.Write(Mark{State: Member}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Sequence(); err == nil {
		t.Error("there is no error of a member")
	}
}

func TestOtherClusters(t *testing.T) {
	f := File{Folder: "/data"}
	for _, row := range []struct {
		err error
		bad bool
	}{
		{f.CheckCreate(Mark{}, "db-0"), false},
		{f.CheckCreate(Mark{State: Creating}, "db-0"), false},
		{f.CheckCreate(Mark{State: Left, Cluster: "c"}, "db-0"), true},
		{f.CheckCluster(Mark{}, "c", "db-0"), false},
		{f.CheckCluster(Mark{State: Left, Cluster: "c"}, "c", "db-0"), false},
		{f.CheckCluster(Mark{State: Member, Cluster: "d"}, "c", "db-0"), true},
	} {
		if (row.err != nil) != row.bad || row.bad && driver.CodeOf(row.err) != driver.NotInstalled {
			t.Errorf("the error is %v, want one: %t", row.err, row.bad)
		}
	}
}

func TestStatus(t *testing.T) {
	for _, row := range []struct {
		name          string
		mark          Mark
		runs, answers bool
		code          driver.Code
		fails         bool
	}{
		{"stopped", Mark{State: Member}, false, false, driver.Stopped, false},
		{"running", Mark{State: Member}, true, true, driver.Primary, false},
		{"being promoted", Mark{State: Promoting}, true, true, driver.Primary, false},
		{"joining", Mark{State: Joining}, true, true, driver.Failed, true},
		{"hanging", Mark{State: Member}, true, false, driver.Failed, true},
	} {
		f := File{Folder: t.TempDir(), HasData: func() (bool, error) { return true, nil }}
		if err := f.Write(row.mark); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		code, err := f.Status(ctx, func() (bool, error) { return row.runs, nil }, func(context.Context) error {
			if row.answers {
				return nil
			}
			return errors.New("no answer")
		})
		cancel()
		if code != row.code || (err != nil) != row.fails {
			t.Errorf("%s: %d, %v", row.name, code, err)
		}
	}
}
