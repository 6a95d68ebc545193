package record

// What a line of a journal tells.
const (
	// Start and End are of a process 1, Serve and Served of its server. One
	// that was killed wrote no last line.
	Start  = "start"
	End    = "end"
	Serve  = "serve"
	Served = "served"
	// Command is a hook's command as it arrives, and Done its end with its
	// answer.
	Command = "command"
	Done    = "done"
	// Asked is a status or sequence: a question changes nothing.
	Asked = "asked"
	// Primary is a server that becomes primary, or takes a newer epoch while
	// it is: it is written before the first client is served. Ceased is
	// written after the last.
	Primary = "primary"
	Ceased  = "ceased"
	// Meets names in Other a run that still held its lock, and so was primary,
	// when this one became primary. It needs no clock.
	Meets = "meets"
	// Over names in Other a run that was primary, wrote no Ceased and is seen
	// to be gone.
	Over = "over"
	// Established is an epoch that enough followers have joined: from now on
	// there are entries of it.
	Established = "established"
	// Joined is a follower that has promised to follow no older epoch.
	Joined = "joined"
	// Cut is a copy that gave up its entries from Index on, to follow.
	Cut = "cut"
	// Ack is an append that is acknowledged: written before the answer.
	Ack = "ack"
)

// JournalSuffix and LockSuffix end the names of a pod's two files in the folder
// of the journals: the journal, and the file that its server holds an exclusive
// lock of while it is primary.
const (
	JournalSuffix = ".journal"
	LockSuffix    = ".primary"
)

// Line is one line of a journal.
type Line struct {
	At       int64  `json:"at"`   // by the machine's monotonic clock, in nanoseconds
	Wall     string `json:"wall"` // for readers
	What     string `json:"what"`
	Run      string `json:"run"` // each process is a run
	Pod      string `json:"pod"`
	UID      string `json:"uid,omitempty"` // the pod's
	Epoch    uint64 `json:"epoch,omitempty"`
	Index    uint64 `json:"index,omitempty"`
	Position uint64 `json:"position,omitempty"` // an append's, among the appends
	Client   string `json:"client,omitempty"`
	Request  string `json:"request,omitempty"`
	Other    string `json:"other,omitempty"`
	Text     string `json:"text,omitempty"`
}
