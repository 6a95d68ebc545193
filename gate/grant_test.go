package main

import (
	"strings"
	"syscall"
	"testing"
)

var grantCases = []struct {
	name  string
	files map[string]string
	epoch string // empty: no grant
	fault string // part of the output of status
}{
	{"nothing granted yet", files("", podUID), "", ""},
	{"this pod's grant", files(podUID+" 1", podUID), "1", ""},
	{"a long epoch", files(podUID+" 999999999999999999", podUID), "999999999999999999", ""},
	{"an epoch that fits no int64", files(podUID+" 9999999999999999999", podUID), "", "which is not a grant"},
	{"another pod's grant", files(strangeUID+" 1", podUID), "", "the grant is for pod \"" + strangeUID + "\""},
	{"a longer UID", files(podUID+"7 1", podUID), "", "the grant is for pod"},
	{"a shorter UID", files(podUID[:35]+" 1", podUID), "", "the grant is for pod"},
	{"a pattern for a UID", files("* 1", podUID), "", "the grant is for pod"},
	{"a UID that is a pattern", files(podUID+" 1", "*"), "", "the grant is for pod"},
	{"no epoch", files(podUID, podUID), "", "which is not a grant"},
	{"a space without an epoch", files(podUID+" ", podUID), "", "which is not a grant"},
	{"epoch 0", files(podUID+" 0", podUID), "", "which is not a grant"},
	{"a leading zero", files(podUID+" 01", podUID), "", "which is not a grant"},
	{"a sign", files(podUID+" +1", podUID), "", "which is not a grant"},
	{"a negative epoch", files(podUID+" -1", podUID), "", "which is not a grant"},
	{"hexadecimal", files(podUID+" 0x1", podUID), "", "which is not a grant"},
	{"digits of another script", files(podUID+" \u0661", podUID), "", "which is not a grant"},
	{"two spaces", files(podUID+"  1", podUID), "", "which is not a grant"},
	{"a tab", files(podUID+"\t1", podUID), "", "which is not a grant"},
	{"a space before the UID", files(" "+podUID+" 1", podUID), "", "which is not a grant"},
	{"a space after the epoch", files(podUID+" 1 ", podUID), "", "which is not a grant"},
	{"text after the epoch", files(podUID+" 1 yes", podUID), "", "which is not a grant"},
	{"a newline after the epoch", files(podUID+" 1\n", podUID), "", "which is not a grant"},
	{"a newline and text after the epoch", files(podUID+" 1\nyes", podUID), "", "which is not a grant"},
	{"a newline before the UID", files("\n"+podUID+" 1", podUID), "", "the grant is for pod"},
	{"the epoch before the UID", files("1 "+podUID, podUID), "", "which is not a grant"},
	{"the old signal file", files("start", podUID), "", "which is not a grant"},
	{"garbage", files("\xff\xfe`$(id)`\\", podUID), "", "which is not a grant"},
	{"a megabyte", files(podUID+" "+strings.Repeat("1", 1<<20), podUID), "", "too long for a grant"},
	{"an empty UID", files(" 1", ""), "", "no grant can be for this pod"},
	{"an empty UID file", files(podUID+" 1", ""), "", "no grant can be for this pod"},
	{"a UID with a newline", files(podUID+" 1", podUID+"\n"), "", "no grant can be for this pod"},
	{"a UID that is two words", files("a b 1", "a b"), "", "which is not a grant"},
	{"no file with the UID", map[string]string{grantFile: podUID + " 1"}, "", "pod-uid: no such file or directory"},
	{"no file with the grant", map[string]string{uidFile: podUID}, "", "start-signal: no such file or directory"},
	{"no files", nil, "", "start-signal: no such file or directory"},
}

func files(grant, uid string) map[string]string {
	return map[string]string{grantFile: grant, uidFile: uid}
}

func podWith(t *testing.T, files map[string]string) pod {
	p := pod{t: t, dir: t.TempDir()}
	p.write(files)
	return p
}

func TestStatusSaysWhereThePodStands(t *testing.T) {
	for _, c := range grantCases {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, gate(podWith(t, c.files), "status"))
			switch {
			case c.epoch != "":
				wantEqual(t, "status", got.stdout+got.status, "granted, epoch "+c.epoch+"\nexit 0")
			case c.fault == "":
				wantEqual(t, "status", got.stdout+got.status, "waiting\nexit 1")
			default:
				if !strings.HasPrefix(got.stdout, "waiting: ") || !strings.Contains(got.stdout, c.fault) {
					t.Errorf("status prints %q, want waiting: ... %s", got.stdout, c.fault)
				}
				wantEqual(t, "status", got.status, "exit 1")
			}
			if strings.Count(got.stdout, "\n") != 1 || len(got.stdout) > 500 {
				t.Errorf("status prints %q, want one short line", got.stdout)
			}
		})
	}
}

// A shell cannot store a NUL, so only the gate must reject it.
func TestNoWayTakesAFileForAGrantThatIsNone(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		for _, c := range grantCases {
			t.Run(c.name, func(t *testing.T) {
				r := start(t, w.command(podWith(t, c.files), "true"))
				line := r.line()
				if c.epoch != "" {
					if !strings.HasPrefix(line, "start signal received (epoch "+c.epoch+") after ") {
						t.Errorf("the log is %q, want a start with epoch %s", line, c.epoch)
					}
					wantEqual(t, "the exit", r.end().status, "exit 0")
					return
				}
				if !strings.HasPrefix(line, "waiting for the start signal; pod ") {
					t.Errorf("the log is %q, want a line about the wait", line)
				}
				r.signal(syscall.SIGTERM)
				wantEqual(t, "the exit", r.end().status, "exit 143")
			})
		}
	})
}

func TestAGrantWithANulIsNone(t *testing.T) {
	if now := judge(podUID+" 1\x00", podUID); now.granted() {
		t.Error("granted")
	}
}

// The kubelet swaps a link to a folder, and files that are already open keep the old content. Only the
// last content is a grant for this pod.
func TestEachContentIsReadAnew(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		p := newPod(t, "")
		r := start(t, w.command(p, "cat", p.dir+"/"+grantFile))
		r.waits()
		for range 50 {
			for _, none := range []string{strangeUID + " 7", "", podUID, podUID + " 0", "garbage"} {
				p.grant(none)
			}
		}
		p.grant(granted)
		wantEqual(t, "the grant when the program starts", r.end().stdout, granted)
	})
}

func TestAVolumeMayComeLate(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		p := pod{t: t, dir: t.TempDir()}
		r := start(t, w.command(p, "echo", "started"))
		if line, want := r.line(), "waiting for the start signal; pod unknown: cannot read file "+p.dir+"/pod-uid"; !strings.HasPrefix(line, want) {
			t.Errorf("the log is %q, want %q", line, want)
		}
		p.grant(granted)
		wantEqual(t, "the program", r.end().stdout, "started\n")
	})
}
