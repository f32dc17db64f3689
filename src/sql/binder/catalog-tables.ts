/**
 * Tables of `pg_catalog` and `information_schema` that PostgreSQL clients read, with the columns that these clients
 * use.
 */

/** The `typtype` of all types: there are no domains, enums or composites. */
export const BASE_TYPE = "b";

/** Tables with rows, by full name; `name:TYPE` for each column. */
const FILLED_TABLES = {
  "pg_catalog.pg_type":
    "oid:INT typname:STRING typbasetype:INT typarray:INT typnamespace:INT typnotnull:BOOLEAN typtypmod:INT typtype:CHAR typcategory:CHAR typrelid:INT typelem:INT typreceive:INT typsend:INT typdelim:CHAR typinput:INT typoutput:INT typowner:INT typlen:SHORT typbyval:BOOLEAN typispreferred:BOOLEAN typisdefined:BOOLEAN typalign:CHAR typstorage:CHAR typndims:INT typcollation:INT typdefault:STRING typacl:STRING",
  "pg_catalog.pg_proc":
    "oid:INT proname:STRING pronamespace:INT proowner:INT prolang:INT prokind:CHAR proretset:BOOLEAN prorettype:INT pronargs:SHORT proargtypes:STRING proargnames:STRING proargmodes:STRING proallargtypes:STRING proacl:STRING provolatile:CHAR proparallel:CHAR prosecdef:BOOLEAN prosrc:STRING probin:STRING proleakproof:BOOLEAN proconfig:STRING",
  "pg_catalog.pg_class":
    "oid:INT relname:STRING relnamespace:INT reltype:INT reloftype:INT relowner:INT relam:INT relfilenode:INT reltablespace:INT relpages:INT reltuples:FLOAT relallvisible:INT reltoastrelid:INT relhasindex:BOOLEAN relisshared:BOOLEAN relpersistence:CHAR relkind:CHAR relnatts:SHORT relchecks:SHORT relhasrules:BOOLEAN relhastriggers:BOOLEAN relhassubclass:BOOLEAN relrowsecurity:BOOLEAN relforcerowsecurity:BOOLEAN relispopulated:BOOLEAN relreplident:CHAR relispartition:BOOLEAN relrewrite:INT relfrozenxid:LONG relminmxid:LONG relacl:STRING reloptions:STRING relpartbound:STRING relhasoids:BOOLEAN xmin:LONG",
  "pg_catalog.pg_namespace": "nspname:STRING oid:INT xmin:LONG nspowner:INT nspacl:STRING",
  "pg_catalog.pg_attribute":
    "attrelid:INT attname:STRING attnum:SHORT atttypid:INT attnotnull:BOOLEAN atttypmod:INT attlen:SHORT attidentity:STRING attgenerated:STRING attisdropped:BOOLEAN atthasdef:BOOLEAN attcollation:INT attndims:INT attstorage:CHAR attstattarget:INT attacl:STRING",
  "pg_catalog.pg_database":
    "oid:INT datname:STRING datdba:INT encoding:INT datcollate:STRING datctype:STRING datistemplate:BOOLEAN datallowconn:BOOLEAN datconnlimit:INT datlastsysoid:INT datfrozenxid:LONG datminmxid:LONG dattablespace:INT datacl:STRING",
  "pg_catalog.pg_roles":
    "rolname:STRING rolsuper:BOOLEAN rolinherit:BOOLEAN rolcreaterole:BOOLEAN rolcreatedb:BOOLEAN rolcanlogin:BOOLEAN rolreplication:BOOLEAN rolconnlimit:INT rolpassword:STRING rolvaliduntil:TIMESTAMP rolbypassrls:BOOLEAN rolconfig:STRING oid:INT",
  "pg_catalog.pg_user":
    "usename:STRING usesysid:INT usecreatedb:BOOLEAN usesuper:BOOLEAN userepl:BOOLEAN usebypassrls:BOOLEAN passwd:STRING valuntil:TIMESTAMP useconfig:STRING",
  "pg_catalog.pg_settings":
    "name:STRING setting:STRING unit:STRING category:STRING short_desc:STRING context:STRING vartype:STRING boot_val:STRING reset_val:STRING source:STRING min_val:STRING max_val:STRING enumvals:STRING extra_desc:STRING sourcefile:STRING sourceline:INT pending_restart:BOOLEAN",
  "pg_catalog.pg_stat_activity":
    "datid:INT datname:STRING pid:INT leader_pid:INT usesysid:INT usename:STRING application_name:STRING client_addr:STRING client_hostname:STRING client_port:INT backend_start:TIMESTAMP xact_start:TIMESTAMP query_start:TIMESTAMP state_change:TIMESTAMP wait_event_type:STRING wait_event:STRING state:STRING backend_xid:LONG backend_xmin:LONG query_id:LONG query:STRING backend_type:STRING",
  "pg_catalog.pg_tables":
    "schemaname:STRING tablename:STRING tableowner:STRING tablespace:STRING hasindexes:BOOLEAN hasrules:BOOLEAN hastriggers:BOOLEAN rowsecurity:BOOLEAN",
  "information_schema.schemata": "catalog_name:STRING schema_name:STRING schema_owner:STRING",
  "information_schema.tables":
    "table_catalog:STRING table_schema:STRING table_name:STRING table_type:STRING self_referencing_column_name:STRING reference_generation:STRING user_defined_type_catalog:STRING user_defined_type_schema:STRING user_defined_type_name:STRING is_insertable_into:BOOLEAN is_typed:BOOLEAN commit_action:STRING",
  "information_schema.columns":
    "table_catalog:STRING table_schema:STRING table_name:STRING column_name:STRING ordinal_position:INT column_default:STRING is_nullable:STRING data_type:STRING character_maximum_length:INT character_octet_length:INT numeric_precision:INT numeric_precision_radix:INT numeric_scale:INT datetime_precision:INT interval_type:STRING interval_precision:INT character_set_catalog:STRING character_set_schema:STRING character_set_name:STRING collation_catalog:STRING collation_schema:STRING collation_name:STRING domain_catalog:STRING domain_schema:STRING domain_name:STRING udt_catalog:STRING udt_schema:STRING udt_name:STRING scope_catalog:STRING scope_schema:STRING scope_name:STRING maximum_cardinality:INT dtd_identifier:STRING is_self_referencing:STRING is_identity:STRING identity_generation:STRING identity_start:STRING identity_increment:STRING identity_maximum:STRING identity_minimum:STRING identity_cycle:STRING is_generated:STRING generation_expression:STRING is_updatable:STRING",
  "information_schema.character_sets":
    "character_set_catalog:STRING character_set_schema:STRING character_set_name:STRING character_repertoire:STRING form_of_use:STRING default_collate_catalog:STRING default_collate_schema:STRING default_collate_name:STRING",
  "information_schema.questdb_columns":
    "table_catalog:STRING table_schema:STRING table_name:STRING column_name:STRING ordinal_position:INT column_default:STRING is_nullable:STRING data_type:STRING",
};

export type FilledTable = keyof typeof FILLED_TABLES;

/** Tables that are always empty, because this database has no such objects. */
const EMPTY_TABLES = {
  "pg_catalog.pg_attrdef": "oid:INT adrelid:INT adnum:SHORT adbin:STRING",
  "pg_catalog.pg_description": "objoid:INT classoid:INT objsubid:SHORT description:STRING",
  "pg_catalog.pg_shdescription": "objoid:INT classoid:INT description:STRING",
  "pg_catalog.pg_index":
    "indexrelid:INT indrelid:INT indnatts:SHORT indnkeyatts:SHORT indisunique:BOOLEAN indnullsnotdistinct:BOOLEAN indisprimary:BOOLEAN indisexclusion:BOOLEAN indimmediate:BOOLEAN indisclustered:BOOLEAN indisvalid:BOOLEAN indcheckxmin:BOOLEAN indisready:BOOLEAN indislive:BOOLEAN indisreplident:BOOLEAN indkey:INT indcollation:INT indclass:INT indoption:INT indexprs:STRING indpred:STRING",
  "pg_catalog.pg_inherits": "inhrelid:INT inhparent:INT inhseqno:INT",
  "pg_catalog.pg_locks":
    "locktype:STRING database:INT relation:INT page:INT tuple:SHORT virtualxid:STRING transactionid:LONG classid:INT objid:INT objsubid:SHORT virtualtransaction:STRING pid:INT mode:STRING granted:BOOLEAN fastpath:BOOLEAN waitstart:TIMESTAMP",
  "pg_catalog.pg_range":
    "rngtypid:INT rngsubtype:INT rngcollation:INT rngsubopc:INT rngcanonical:INT rngsubdiff:INT rngmultitypid:INT",
  "pg_catalog.pg_extension":
    "oid:INT xmin:LONG extname:STRING extowner:INT extnamespace:INT extrelocatable:BOOLEAN extversion:STRING extconfig:STRING extcondition:STRING",
  "pg_catalog.pg_auth_members": "roleid:INT member:INT grantor:INT admin_option:BOOLEAN",
  "pg_catalog.pg_sequence":
    "seqrelid:INT seqtypid:INT seqstart:LONG seqincrement:LONG seqmax:LONG seqmin:LONG seqcache:LONG seqcycle:BOOLEAN",
  "pg_catalog.pg_policy":
    "oid:INT polname:STRING polrelid:INT polcmd:CHAR polpermissive:BOOLEAN polroles:STRING polqual:STRING polwithcheck:STRING",
  "pg_catalog.pg_am": "oid:INT amname:STRING amhandler:INT amtype:CHAR",
  "pg_catalog.pg_collation":
    "oid:INT collname:STRING collnamespace:INT collcollate:STRING collctype:STRING collprovider:CHAR collencoding:INT collisdeterministic:BOOLEAN",
  "pg_catalog.pg_constraint":
    "oid:INT conname:STRING connamespace:INT contype:CHAR condeferrable:BOOLEAN condeferred:BOOLEAN convalidated:BOOLEAN conrelid:INT contypid:INT conindid:INT conparentid:INT confrelid:INT confupdtype:CHAR confdeltype:CHAR conkey:STRING confkey:STRING connoinherit:BOOLEAN conislocal:BOOLEAN coninhcount:INT conenforced:BOOLEAN conperiod:BOOLEAN",
  "pg_catalog.pg_enum": "oid:INT enumtypid:INT enumsortorder:FLOAT enumlabel:STRING",
  "pg_catalog.pg_tablespace": "oid:INT xmin:LONG spcname:STRING spcowner:INT spcacl:STRING spcoptions:STRING",
  "pg_catalog.pg_trigger": "oid:INT tgrelid:INT tgname:STRING tgenabled:CHAR tgisinternal:BOOLEAN tgconstraint:INT",
  "pg_catalog.pg_views": "schemaname:STRING viewname:STRING viewowner:STRING definition:STRING",
  "pg_catalog.pg_matviews":
    "schemaname:STRING matviewname:STRING matviewowner:STRING tablespace:STRING hasindexes:BOOLEAN ispopulated:BOOLEAN definition:STRING",
  "pg_catalog.pg_indexes": "schemaname:STRING tablename:STRING indexname:STRING tablespace:STRING indexdef:STRING",
  "pg_catalog.pg_depend":
    "classid:INT objid:INT objsubid:SHORT refclassid:INT refobjid:INT refobjsubid:SHORT deptype:CHAR",
  "pg_catalog.pg_stat_user_tables":
    "relid:INT schemaname:STRING relname:STRING seq_scan:LONG idx_scan:LONG n_tup_ins:LONG n_tup_upd:LONG n_tup_del:LONG n_live_tup:LONG n_dead_tup:LONG last_vacuum:TIMESTAMP last_analyze:TIMESTAMP",
  "information_schema.referential_constraints":
    "constraint_catalog:STRING constraint_schema:STRING constraint_name:STRING unique_constraint_catalog:STRING unique_constraint_schema:STRING unique_constraint_name:STRING match_option:STRING update_rule:STRING delete_rule:STRING",
  "information_schema.sequences":
    "sequence_catalog:STRING sequence_schema:STRING sequence_name:STRING data_type:STRING numeric_precision:INT numeric_precision_radix:INT numeric_scale:INT start_value:STRING minimum_value:STRING maximum_value:STRING increment:STRING cycle_option:STRING",
  "information_schema.routines":
    "specific_catalog:STRING specific_schema:STRING specific_name:STRING routine_catalog:STRING routine_schema:STRING routine_name:STRING routine_type:STRING data_type:STRING type_udt_catalog:STRING type_udt_schema:STRING type_udt_name:STRING routine_definition:STRING external_language:STRING",
  "information_schema.views":
    "table_catalog:STRING table_schema:STRING table_name:STRING view_definition:STRING check_option:STRING is_updatable:STRING is_insertable_into:STRING is_trigger_updatable:STRING is_trigger_deletable:STRING is_trigger_insertable_into:STRING",
  "information_schema.table_constraints":
    "constraint_catalog:STRING constraint_schema:STRING constraint_name:STRING table_catalog:STRING table_schema:STRING table_name:STRING constraint_type:STRING is_deferrable:STRING initially_deferred:STRING enforced:STRING nulls_distinct:STRING",
  "information_schema.key_column_usage":
    "constraint_catalog:STRING constraint_schema:STRING constraint_name:STRING table_catalog:STRING table_schema:STRING table_name:STRING column_name:STRING ordinal_position:INT position_in_unique_constraint:INT",
  "pg_catalog.pg_statistic_ext":
    "oid:INT stxrelid:INT stxname:STRING stxnamespace:INT stxowner:INT stxstattarget:INT stxkeys:STRING stxkind:STRING",
  "pg_catalog.pg_language":
    "oid:INT lanname:STRING lanowner:INT lanpltrusted:BOOLEAN lanacl:STRING lanispl:BOOLEAN lanplcallfoid:INT lanvalidator:INT laninline:INT",
  "pg_catalog.pg_opclass":
    "oid:INT opcmethod:INT opcname:STRING opcnamespace:INT opcintype:INT opcdefault:BOOLEAN opcfamily:INT opckeytype:INT opcowner:INT",
  "pg_catalog.pg_publication":
    "oid:INT pubname:STRING pubowner:INT puballtables:BOOLEAN pubinsert:BOOLEAN pubupdate:BOOLEAN pubdelete:BOOLEAN pubtruncate:BOOLEAN",
  "pg_catalog.pg_publication_rel": "oid:INT prpubid:INT prrelid:INT",
  "pg_catalog.pg_publication_namespace": "oid:INT pnpubid:INT pnnspid:INT",
  "pg_catalog.pg_foreign_table": "ftrelid:INT ftserver:INT ftoptions:STRING",
  "pg_catalog.pg_foreign_server":
    "oid:INT srvname:STRING srvowner:INT srvfdw:INT srvtype:STRING srvversion:STRING srvacl:STRING srvoptions:STRING",
  "pg_catalog.pg_partitioned_table": "partrelid:INT partstrat:CHAR partnatts:SHORT",
  "pg_catalog.pg_rewrite": "oid:INT rulename:STRING ev_class:INT ev_type:CHAR ev_enabled:CHAR",
  "pg_catalog.pg_default_acl": "oid:INT defaclrole:INT defaclnamespace:INT defaclobjtype:CHAR defaclacl:STRING",
  "pg_catalog.pg_conversion":
    "oid:INT conname:STRING connamespace:INT conowner:INT conforencoding:INT contoencoding:INT conproc:INT condefault:BOOLEAN",
  "pg_catalog.pg_cast": "oid:INT castsource:INT casttarget:INT castfunc:INT castcontext:CHAR castmethod:CHAR",
  "pg_catalog.pg_foreign_data_wrapper":
    "oid:INT fdwname:STRING fdwowner:INT fdwhandler:INT fdwvalidator:INT fdwacl:STRING fdwoptions:STRING",
  "pg_catalog.pg_user_mappings": "umid:INT srvid:INT srvname:STRING umuser:INT usename:STRING umoptions:STRING",
  "pg_catalog.pg_ts_config": "oid:INT cfgname:STRING cfgnamespace:INT cfgowner:INT cfgparser:INT",
  "pg_catalog.pg_ts_dict":
    "oid:INT dictname:STRING dictnamespace:INT dictowner:INT dicttemplate:INT dictinitoption:STRING",
  "pg_catalog.pg_ts_parser":
    "oid:INT prsname:STRING prsnamespace:INT prsstart:INT prstoken:INT prsend:INT prsheadline:INT prslextype:INT",
  "pg_catalog.pg_ts_template": "oid:INT tmplname:STRING tmplnamespace:INT tmplinit:INT tmpllexize:INT",
  "pg_catalog.pg_largeobject_metadata": "oid:INT lomowner:INT lomacl:STRING",
  "pg_catalog.pg_operator":
    "oid:INT oprname:STRING oprnamespace:INT oprowner:INT oprkind:CHAR oprcanmerge:BOOLEAN oprcanhash:BOOLEAN oprleft:INT oprright:INT oprresult:INT oprcode:INT",
  "pg_catalog.pg_opfamily": "oid:INT opfmethod:INT opfname:STRING opfnamespace:INT opfowner:INT",
  "pg_catalog.pg_amop":
    "oid:INT amopfamily:INT amoplefttype:INT amoprighttype:INT amopstrategy:SHORT amoppurpose:CHAR amopopr:INT amopmethod:INT amopsortfamily:INT",
  "pg_catalog.pg_amproc": "oid:INT amprocfamily:INT amproclefttype:INT amprocrighttype:INT amprocnum:SHORT amproc:INT",
  "pg_catalog.pg_db_role_setting": "setdatabase:INT setrole:INT setconfig:STRING",
  "pg_catalog.pg_subscription":
    "oid:INT subdbid:INT subname:STRING subowner:INT subenabled:BOOLEAN subconninfo:STRING subslotname:STRING subsynccommit:STRING subpublications:STRING",
  "pg_catalog.pg_event_trigger":
    "oid:INT evtname:STRING evtevent:STRING evtowner:INT evtfoid:INT evtenabled:CHAR evttags:STRING",
  "pg_catalog.pg_available_extensions": "name:STRING default_version:STRING installed_version:STRING comment:STRING",
  "pg_catalog.pg_cursors": "name:STRING statement:STRING",
};

/** How copies by COPY go, in the order of time, which is the first column. */
const COPY_LOGS: Readonly<Record<string, string>> = {
  "sys.text_import_log":
    "ts:TIMESTAMP id:VARCHAR table_name:SYMBOL_TEXT file:SYMBOL_TEXT phase:SYMBOL_TEXT status:SYMBOL_TEXT message:VARCHAR rows_handled:LONG rows_imported:LONG errors:LONG",
  "sys.copy_export_log":
    "ts:TIMESTAMP id:VARCHAR table_name:SYMBOL_TEXT export_path:SYMBOL_TEXT num_exported_files:INT phase:SYMBOL_TEXT status:SYMBOL_TEXT message:VARCHAR errors:LONG",
};

export const isCopyLog = (source: string): boolean => Object.hasOwn(COPY_LOGS, source);

export const CATALOG_TABLES: Readonly<Record<string, string>> = { ...FILLED_TABLES, ...EMPTY_TABLES, ...COPY_LOGS };

/** Columns with the same value in every row. */
const CONSTANT_COLUMNS: Readonly<Record<string, Readonly<Record<string, string | null>>>> = {
  "pg_catalog.pg_class": { relacl: null, reloptions: null, relpartbound: null },
  "pg_catalog.pg_type": { typtype: BASE_TYPE },
};

/** The value of the column in every row; undefined if rows may differ. */
export function constantOfColumn(table: string, column: string): string | null | undefined {
  return CONSTANT_COLUMNS[catalogName(table) ?? ""]?.[column];
}

/** True if the table is always empty. */
export function isEmptyTable(name: string): boolean {
  const full = catalogName(name);
  return full !== undefined && Object.hasOwn(EMPTY_TABLES, full);
}

/** The system column with the id of a row's table. `*` does not include it. */
export const TABLE_OID = "tableoid";

/** The full name of a catalogue table. Those of `pg_catalog` may be named without the schema. */
export function catalogName(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (Object.hasOwn(CATALOG_TABLES, lower)) return lower;
  const qualified = `pg_catalog.${lower}`;
  return Object.hasOwn(CATALOG_TABLES, qualified) ? qualified : undefined;
}
