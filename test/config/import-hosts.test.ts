import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { importHosts } from '../../src/config/import-hosts.ts';
import { hostNameSchema } from '../../src/config/schema.ts';

const host = (name: string, address = name, more: object = {}) => ({ name, address, groups: [], ...more });

describe('hosts are taken from what a team has', () => {
  it('an ssh config: first value wins, patterns and Match name no machine, Include is told', () => {
    const found = importHosts(
      [
        '# the boxes',
        'Include ~/.ssh/more',
        'Host gpu-box-3 node-3',
        '  HostName 192.0.2.13',
        '  User ml',
        '  Port 2222',
        '  HostName 198.51.100.1',
        'Host=plain',
        'Host gpu-* !gpu-old',
        '  User everybody',
        'Match host x exec "true"',
        '  HostName 203.0.113.9',
        'Host *',
        '  User nobody',
      ].join('\n'),
    );
    const more = { user: 'ml', port: 2222 };
    expect(found).toEqual({
      format: 'ssh config',
      hosts: [host('gpu-box-3', '192.0.2.13', more), host('node-3', '192.0.2.13', more), host('plain')],
      left: [
        'Include ~/.ssh/more was not followed: import that file too.',
        '"gpu-*" is a pattern, not one machine.',
        '"!gpu-old" is a pattern, not one machine.',
      ],
    });
  });

  it('an Ansible inventory: groups, variables, and no machine out of :vars, :children or a range', () => {
    const found = importHosts(`
bastion ansible_host=192.0.2.1
[train]
gpu-box-3 ansible_host=192.0.2.13 ansible_port=2222 ansible_user="ml"
gpu-box-4
gpu[01:50]
[serve]
gpu-box-3
[train:vars]
ansible_user=root
[all:children]
train
`);
    expect(found).toEqual({
      format: 'Ansible inventory',
      hosts: [
        host('bastion', '192.0.2.1'),
        host('gpu-box-3', '192.0.2.13', { port: 2222, user: 'ml', groups: ['serve', 'train'] }),
        host('gpu-box-4', 'gpu-box-4', { groups: ['train'] }),
      ],
      left: ['"gpu[01:50]" is a pattern, not one machine.'],
    });
  });

  it('an Ansible inventory in YAML', () => {
    const found = importHosts(`
all:
  hosts:
    bastion: { ansible_host: 192.0.2.1 }
  children:
    train:
      hosts:
        gpu-box-3: { ansible_host: 192.0.2.13, ansible_port: 2222 }
        gpu-box-4:
`);
    expect(found.hosts).toEqual([
      host('bastion', '192.0.2.1'),
      host('gpu-box-3', '192.0.2.13', { port: 2222, groups: ['train'] }),
      host('gpu-box-4', 'gpu-box-4', { groups: ['train'] }),
    ]);
  });

  it('plain lines in the ways people write them', () => {
    const found = importHosts('a\nb 192.0.2.2\nc=192.0.2.3\nml@192.0.2.4:2222\n[2001:db8::5]\n# no\nd a:b:c\n');
    expect(found.hosts).toEqual([
      host('a'),
      host('b', '192.0.2.2'),
      host('c', '192.0.2.3'),
      host('192.0.2.4', '192.0.2.4', { user: 'ml', port: 2222 }),
      host('2001-db8--5', '2001:db8::5'),
    ]);
    expect(found.left).toEqual(['"d a:b:c" is not a name, a name and an address, or user@address:port.']);
  });

  it.each([
    ['nothing', ''],
    ['a shell line', '$(reboot)'],
    ['a path', '../../etc/passwd'],
    ['a port that is none', 'a 192.0.2.2:99999999'],
    ['a YAML bomb', `hosts: &a [${'*a,'.repeat(50)}]`],
    ['YAML that is none', 'hosts: {'],
    ['a user with an option in it', '-oProxyCommand=x@192.0.2.2'],
    ['an address that is an option', 'a -oProxyCommand=x'],
    ['control characters', 'a\u0000b \u001b[31m'],
  ])('takes no harm from %s', (_what, text) => {
    for (const { name, address, port, user } of importHosts(text).hosts) {
      expect(address).toMatch(/^[A-Za-z0-9]/);
      expect(hostNameSchema.safeParse(name).success).toBe(true);
      expect(port ?? 22).toBeLessThan(65_536);
      expect(user ?? 'ok').toMatch(/^[A-Za-z_]/);
    }
  });

  it('answers any text with names that reclaim.yaml takes', () => {
    const words = fc.constantFrom(
      'Host ',
      'hosts:',
      '[a]',
      'ansible_host=',
      '@',
      ':',
      '\n',
      ' ',
      'gpu-box-3',
      '*',
      '1',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(words).map((parts) => parts.join('')),
        ),
        (text) => {
          const { hosts } = importHosts(text);
          expect(hosts.every(({ name }) => hostNameSchema.safeParse(name).success)).toBe(true);
          expect(hosts.every(({ address }) => address !== '')).toBe(true);
          expect(new Set(hosts.map(({ name }) => name)).size).toBe(hosts.length);
        },
      ),
    );
  });

  it('and odd YAML prints nothing past what it answers', () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    importHosts('all:\n  hosts:\n    box: {ansible_host: !!js/function 192.0.2.3}\n');
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });
});
