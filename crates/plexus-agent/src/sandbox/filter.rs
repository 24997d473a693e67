//! The system call filter of a child. It prevents each process from tracing another, accessing its memory or taking its
//! descriptors. Otherwise an approved command could use Claude Code's own streams and forge its conversation with the
//! hub. A debugger may still start a program and trace it (`PTRACE_TRACEME`).

use std::io;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    c_uint, sock_filter, sock_fprog,
};

/// Offsets in the kernel's `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

/// The requests that attach a tracer to any process; the type in `libc` differs between C libraries.
const PTRACE_ATTACH: u32 = 16;
const PTRACE_SEIZE: u32 = 0x4206;

/// One set of system call numbers that programs on this machine can use.
struct Abi {
    architecture: u32,
    ptrace: u32,
    /// `process_vm_readv`, `process_vm_writev` and `pidfd_getfd`.
    denied: [u32; 3],
    /// Ranges of numbers that belong to another ABI, as the first number and one past the last.
    foreign: &'static [(u32, u32)],
}

#[cfg(target_arch = "x86_64")]
const ABIS: &[Abi] = &[
    // The x32 ranges: numbers with its mark, and its own numbers that old kernels accept without the mark.
    Abi {
        architecture: 0xC000_003E,
        ptrace: 101,
        denied: [310, 311, 438],
        foreign: &[(512, 548), (0x4000_0000, u32::MAX)],
    },
    Abi { architecture: 0x4000_0003, ptrace: 26, denied: [347, 348, 438], foreign: &[] },
];

#[cfg(target_arch = "aarch64")]
const ABIS: &[Abi] = &[
    Abi { architecture: 0xC000_00B7, ptrace: 117, denied: [270, 271, 438], foreign: &[] },
    Abi { architecture: 0x4000_0028, ptrace: 26, denied: [376, 377, 438], foreign: &[] },
];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ABIS: &[Abi] = &[];

/// A filter that is ready to install.
#[derive(Debug)]
pub(super) struct Filter {
    program: Vec<sock_filter>,
}

impl Filter {
    /// The filter for this architecture; `None` if its system call numbers are not defined here.
    pub(super) fn against_tracing() -> Option<Self> {
        if ABIS.is_empty() {
            return None;
        }
        let mut program = vec![load(ARCHITECTURE)];
        for abi in ABIS {
            let block = abi.block();
            // A block has two or three dozen instructions, so an offset always fits.
            program.push(jump(BPF_JEQ, abi.architecture, 0, u8::try_from(block.len()).ok()?));
            program.extend(block);
        }
        program.push(answer(errno(libc::ENOSYS)));
        Some(Self { program })
    }

    /// Installs the filter for this process and all its descendants. Needs CAP_SYS_ADMIN in the user namespace, which
    /// avoids `no_new_privs`.
    pub(super) fn install(&self) -> io::Result<()> {
        let length = u16::try_from(self.program.len()).map_err(io::Error::other)?;
        let program = sock_fprog { len: length, filter: self.program.as_ptr().cast_mut() };
        // SAFETY: the program is valid memory of the given length, and the kernel only reads it.
        let installed = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                // Without this flag older kernels slow down the whole process tree.
                libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                &raw const program,
            )
        };
        if installed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Abi {
    fn block(&self) -> Vec<sock_filter> {
        let mut block = vec![load(NUMBER)];
        for &(first, behind) in self.foreign {
            block.push(jump(BPF_JGE, first, 0, 2));
            block.push(jump(BPF_JGE, behind, 1, 0));
            block.push(answer(errno(libc::ENOSYS)));
        }
        for number in self.denied {
            block.push(jump(BPF_JEQ, number, 0, 1));
            block.push(answer(errno(libc::EPERM)));
        }
        block.push(jump(BPF_JEQ, self.ptrace, 1, 0));
        block.push(answer(SECCOMP_RET_ALLOW));
        block.push(load(FIRST_ARGUMENT));
        for request in [PTRACE_ATTACH, PTRACE_SEIZE] {
            block.push(jump(BPF_JEQ, request, 0, 1));
            block.push(answer(errno(libc::EPERM)));
        }
        block.push(answer(SECCOMP_RET_ALLOW));
        block
    }
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (BPF_LD | BPF_W | BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

fn jump(test: c_uint, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | test | BPF_K) as u16, jt, jf, k }
}

fn answer(k: u32) -> sock_filter {
    sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k }
}

fn errno(error: i32) -> u32 {
    SECCOMP_RET_ERRNO | error.unsigned_abs()
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    /// The kernel's verdict.
    fn run(architecture: u32, number: u32, first_argument: u32) -> u32 {
        let filter = Filter::against_tracing().unwrap();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = filter.program[at];
            at += 1;
            let code = u32::from(code);
            if code == BPF_RET | BPF_K {
                return k;
            } else if code == BPF_LD | BPF_W | BPF_ABS {
                loaded = match k {
                    NUMBER => number,
                    ARCHITECTURE => architecture,
                    FIRST_ARGUMENT => first_argument,
                    _ => panic!("nothing is at {k}"),
                };
            } else {
                let holds = if code == BPF_JMP | BPF_JEQ | BPF_K { loaded == k } else { loaded >= k };
                at += usize::from(if holds { jt } else { jf });
            }
        }
    }

    #[test]
    fn tracing_is_denied_in_every_abi_and_everything_else_is_allowed() {
        const X86_64: u32 = 0xC000_003E;
        const I386: u32 = 0x4000_0003;
        const X32: u32 = 0x4000_0000;
        let denied = errno(libc::EPERM);
        let unknown = errno(libc::ENOSYS);
        for (architecture, numbers, ptrace) in [(X86_64, [310, 311, 438], 101), (I386, [347, 348, 438], 26)] {
            for number in numbers {
                assert_eq!(run(architecture, number, 0), denied, "{number}");
            }
            for (request, answer) in
                [(0, SECCOMP_RET_ALLOW), (16, denied), (0x4206, denied), (7, SECCOMP_RET_ALLOW)]
            {
                assert_eq!(run(architecture, ptrace, request), answer, "{request}");
            }
            for number in [0, 1, 59, 62, 257, 434, 437, 439, 462] {
                assert_eq!(run(architecture, number, 16), SECCOMP_RET_ALLOW, "{number}");
            }
        }
        for number in [X32, X32 | 438, X32 | 521, X32 | 539, 512, 521, 547] {
            assert_eq!(run(X86_64, number, 16), unknown, "{number}");
        }
        assert_eq!(run(X86_64, 548, 16), SECCOMP_RET_ALLOW);
        assert_eq!(run(0x1234, 1, 0), unknown);
    }
}
