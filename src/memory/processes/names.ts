/** The lists of program names the process side knows. Exact names, compared with exe, comm and argv[0]: never substrings. */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Stages of a compiler: short-lived, started by a build, never by init and never by a person who walks away. */
export const compilers = words(`
  nvcc nvcc.bin cicc ptxas cudafe++ fatbinary nvlink hipcc hipcc.bin amdclang amdclang++ clang-offload-bundler
  clang-offload-wrapper clang-linker-wrapper cc1 cc1plus cc1obj f951 lto1 lto-wrapper lto-dump collect2 ld ld.bfd ld.gold
  ld.lld lld mold as gcc g++ c++ cc gfortran clang clang++ llc opt rustc swiftc ispc icx icpx dpcpp nvc nvc++ nvfortran
  ccache distcc cython
`);

/** Programs that drive a build, whatever their arguments say. */
export const drivers = words(`
  ninja ninja-build samu make gmake cmake cmake3 ctest meson scons b2 bjam maturin conda-build colcon catkin
`);

/** Programs that build only with some subcommands: `uv run server.py` is a server. */
export const subcommands: Readonly<Record<string, ReadonlySet<string>>> = {
  uv: words('pip sync build add lock install tool'),
  pip: words('install wheel download'),
  pip3: words('install wheel download'),
  cargo: words('build b check c test t bench install rustc clippy doc'),
  bazel: words('build test fetch'),
  bazelisk: words('build test fetch'),
  go: words('build install test vet'),
};

/** Programs that can carry any name: the name they go by then counts as evidence. */
export const carriers =
  /^(node|nodejs|python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|java|sh|bash|dash|ash|zsh|ksh|busybox|sleep|tail|awk|gawk|mawk|bun|deno|stress|stress-ng)$/;
export const pythons = /^(python[\d.]*|pypy[\d.]*)$/;

export const shells = words('sh bash dash ash zsh ksh mksh fish csh tcsh pwsh nu xonsh');

/** What people have open. With a terminal these are never touched, and they belong to no build. */
export const editors = words(`
  vi vim vim.basic vim.tiny nvim nano pico emacs emacs-gtk emacs-nox emacsclient joe micro hx helix kak ed code
  code-server less more most view man tail head watch top htop btop nvtop nvitop gdb lldb strace perf tig lazygit git
`);

export const multiplexers = words('tmux screen SCREEN zellij dtach abduco byobu mosh-server');

/** Whoever takes in children that lost their parent. */
export const adopters =
  /^(systemd|init|tini|tini-static|dumb-init|docker-init|catatonit|containerd-shim.*|conmon|slurmstepd|s6-svscan|runsvdir|supervisord|launchd|openrc-init|tmux|tmux: server|screen)$/;

/** Never signalled (MEMORY.md section 4), by exact name or a prefix that ends in a star. */
const protectedNames = `
  init systemd* dbus* udevd sshd* login sudo su doas agetty getty cron crond atd slurmd slurmstepd slurmctld slurmdbd
  munged dockerd docker docker-proxy containerd containerd-shim* buildkitd runc crun crio conmon podman kubelet kube-proxy
  k3s* nvidia-persistenced nvidia-persiste nv-fabricmanager nv-fabricmanag nv-hostengine dcgm* nvidia-imex Xorg Xwayland
  gdm* gnome-shell sssd sssd_* chronyd ntpd rpcbind rpc.* gssproxy automount multipathd iscsid zed mmfsd weka* lnet*
  beegfs* ceph* postgres postmaster mysqld mariadbd redis* mongod etcd tmux tmux:* screen SCREEN zellij node_exporter
  telegraf netdata prometheus rsyslogd journald auditd polkitd NetworkManager wpa_supplicant snapd lxcfs lxd incusd
  libvirtd qemu-* firecracker snmpd zabbix_agentd tailscaled reclaim* orted prted hydra_pmi_proxy
`
  .trim()
  .split(/\s+/);
const protectedExact = new Set(protectedNames.filter((name) => !name.endsWith('*')));
const protectedPrefixes = protectedNames.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));

export const isProtectedName = (name: string): boolean =>
  protectedExact.has(name) || protectedPrefixes.some((prefix) => name.startsWith(prefix));
